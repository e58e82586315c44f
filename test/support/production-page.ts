/** docs/production.md as an operator follows it: its settings, and its blocks pasted into a shell. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { runInShell } from './operations-page.ts';
import { ROOT } from './service.ts';

const PAGE = readFileSync(join(ROOT, 'docs/production.md'), 'utf8');

/** The folders of the page, each in a folder of a test. */
const FOLDERS = ['/etc/payments', '/var/lib/payments', '/backups'];

export const blockOf = (name: string, folder: string): string => {
  const [, block] = new RegExp(`^ *\`\`\`sh ${name}\n(.*?)^ *\`\`\`$`, 'ms').exec(PAGE) ?? [];
  if (block === undefined) throw new Error(`docs/production.md has no block ${name}`);
  return FOLDERS.reduce((text, path) => text.replaceAll(path, join(folder, path)), block);
};

export const settingsOf = (folder: string): Record<string, string | undefined> =>
  parseEnv(blockOf('settings', folder));

/** What the page shows behind `#>`. */
export const shownIn = (block: string): string[] =>
  [...block.matchAll(/#> *(.*)$/gm)].map(([, shown = '']) => shown);

/** Runs a block, typing `typed`; gives its exit code and the lines that it printed. */
export const paste = async (block: string, env: NodeJS.ProcessEnv, typed: string[] = []) => {
  const input = typed.length === 0 ? '' : `exec <<'TYPED'\n${typed.join('\n')}\nTYPED\n`;
  const { code, stdout, stderr } = await runInShell(`${input}${block}`, env);
  return { code, printed: stdout.split('\n').filter((line) => line !== ''), stderr };
};

/** An issuer as the page describes it: its public keys, and what signs a token of a subject. */
export const issuer = async ({ JWT_ISSUER = '', JWT_AUDIENCE = '' }: NodeJS.ProcessEnv) => {
  const { publicKey, privateKey } = await generateKeyPair('RS256');
  const key = { ...(await exportJWK(publicKey)), kid: 'first', alg: 'RS256' };
  return {
    jwks: JSON.stringify({ keys: [key] }),
    token: (merchant: string, scope: string): Promise<string> =>
      new SignJWT({ client_id: merchant, scope, sub: 'ann@example.com' })
        .setProtectedHeader({ alg: 'RS256', kid: 'first', typ: 'JWT' })
        .setIssuer(JWT_ISSUER)
        .setAudience(JWT_AUDIENCE)
        .setExpirationTime('10m')
        .sign(privateKey),
  };
};
