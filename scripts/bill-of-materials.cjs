'use strict';
/** Prints the lock file's production packages (CycloneDX) on any Node, as the image lacks the launcher's. */
const { execFileSync } = require('node:child_process');
const { join } = require('node:path');

const cwd = join(__dirname, '..');
const BYTES_MAX = 64 * 1024 * 1024;

// With `--omit=dev` npm leaves out production packages that a package for development needs as well.
const args = ['sbom', '--sbom-format=cyclonedx', '--sbom-type=application', '--package-lock-only'];
const bill = JSON.parse(execFileSync('npm', args, { cwd, encoding: 'utf8', maxBuffer: BYTES_MAX }));

const isForDevelopment = ({ properties }) =>
  properties.some(({ name }) => name === 'cdx:npm:package:development');
const left = new Set(bill.components.filter(isForDevelopment).map((one) => one['bom-ref']));
bill.components = bill.components.filter((one) => !left.has(one['bom-ref']));
bill.dependencies = bill.dependencies
  .filter(({ ref }) => !left.has(ref))
  .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((one) => !left.has(one)) }));
// npm gives the name of the folder.
bill.metadata.component.name = require('../package.json').name;
process.stdout.write(`${JSON.stringify(bill, null, 2)}\n`);
