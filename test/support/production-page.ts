/** docs/production.md as an operator follows it: its settings, and its blocks pasted into a shell. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { runInShell } from './backup-page.ts';
import { ROOT } from './service-processes.ts';

const PAGE = readFileSync(join(ROOT, 'docs/production.md'), 'utf8');

/** The folders of the page, each in a folder of a test. */
const FOLDERS = ['/etc/payments', '/var/lib/payments', '/backups'];

export const blockOf = (name: string, folder: string): string => {
  const [, block] = new RegExp(`^ *\`\`\`sh ${name}\n(.*?)^ *\`\`\`$`, 'ms').exec(PAGE) ?? [];
  if (block === undefined) throw new Error(`docs/production.md has no block ${name}`);
  const typed = FOLDERS.reduce((text, path) => text.replaceAll(path, join(folder, path)), block);
  // The page's user is made by root; here it is the one who types.
  return typed
    .replace('-o payments -g payments ', '')
    .replace('chown payments:', 'chown $(id -u):');
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
  const newKey = async (kid: string) => {
    const { publicKey, privateKey } = await generateKeyPair('RS256');
    return { kid, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg: 'RS256' } };
  };
  const keys = [await newKey('first')];
  return {
    jwks: () => JSON.stringify({ keys: keys.map(({ jwk }) => jwk) }),
    /** A new key beside the old one, which signs no more. */
    rotate: async () => void keys.unshift(await newKey('second')),
    token: (merchant: string, scope: string): Promise<string> => {
      const [{ kid, privateKey }] = keys as [(typeof keys)[number]];
      return new SignJWT({ client_id: merchant, scope, sub: 'ann@example.com' })
        .setProtectedHeader({ alg: 'RS256', kid, typ: 'JWT' })
        .setIssuer(JWT_ISSUER)
        .setAudience(JWT_AUDIENCE)
        .setExpirationTime('10m')
        .sign(privateKey);
    },
  };
};
