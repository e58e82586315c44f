/** Certificates that no authority has signed, made with openssl. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from './temporary-folder.ts';

/** Without openssl there is no certificate to try. */
export const hasOpenssl = spawnSync('openssl', ['version']).status === 0;

/** A certificate of its own making for a name such as `DNS:shop.example`, and its key; both in PEM. */
export const ownCertificate = (name: string): { cert: string; key: string } => {
  const folder = temporaryFolder();
  try {
    const [certFile = '', keyFile = ''] = ['cert.pem', 'key.pem'].map((file) =>
      join(folder.path, file),
    );
    const names = ['-subj', '/CN=own', '-addext', `subjectAltName=${name}`];
    const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
    const files = ['-keyout', keyFile, '-out', certFile];
    spawnSync('openssl', ['req', '-x509', '-days', '2', ...kind, ...files, ...names]);
    return { cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') };
  } finally {
    folder.remove();
  }
};
