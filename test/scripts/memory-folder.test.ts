/** Where `npm test` has its files written: in memory, if there is enough of it (ADR-0250). */
import { expect, test } from '@jest/globals';
import { memoryFolder, type System } from '../../scripts/memory-folder.ts';

const DISK = '/dev/vda / ext4 rw,relatime 0 0';
const MEMORY = 'tmpfs /dev/shm tmpfs rw,nosuid,nodev 0 0';
const ENOUGH = 2 ** 30;

const folderOf = (mounts: string[], freeBytes: number): string | undefined =>
  memoryFolder({ mounts: () => mounts.join('\n'), freeBytes: () => freeBytes });

test('ADR-0250: it is the memory that the system mounts for this', () => {
  expect(folderOf([DISK, MEMORY], ENOUGH)).toBe('/dev/shm');
});

test.each<[string, string[], number]>([
  ['none is mounted', [DISK], ENOUGH],
  ['less than 1 GB is free', [DISK, MEMORY], ENOUGH - 1],
  ['it is on a disk', [DISK, '/dev/vdb /dev/shm ext4 rw 0 0'], ENOUGH],
  ['nothing in it may be run', [DISK, 'tmpfs /dev/shm tmpfs rw,noexec 0 0'], ENOUGH],
  ['nothing may be written to it', [DISK, 'tmpfs /dev/shm tmpfs ro 0 0'], ENOUGH],
  ['another mount hides it', [MEMORY, 'tmpfs /dev/shm tmpfs rw,noexec 0 0'], ENOUGH],
])('ADR-0250: where %s, it is the folder for temporary files', (_, mounts, freeBytes) => {
  expect(folderOf(mounts, freeBytes)).toBeUndefined();
});

test('ADR-0250: a system that does not say what is mounted has none', () => {
  const system: System = {
    mounts: () => {
      throw new Error('ENOENT');
    },
    freeBytes: () => ENOUGH,
  };
  expect(memoryFolder(system)).toBeUndefined();
});
