import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { probePython } from '../src/index.ts'

const python = await probePython({})
const run = promisify(execFile)

/** Runs code of the inside, where `memory` is 64 pages that hold something, and prints what it gives for each of them. */
async function printed(code: string): Promise<string> {
  if (!python.ok) throw new Error(python.reason)
  const folder = join(import.meta.dirname, '../src/python')
  const prelude = `
import ctypes, mmap, os, sys
sys.path.insert(0, ${JSON.stringify(folder)})
from tollgate_sandbox import footprint
memory = mmap.mmap(-1, 64 * mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
first = ctypes.addressof(ctypes.c_char.from_buffer(memory)) // mmap.PAGESIZE
for page in range(64): memory[page * mmap.PAGESIZE] = 1
def child(work):
    """What a fork of ours has alone after its work, of that memory."""
    (ready, tell), (wait, go) = os.pipe(), os.pipe()
    with footprint.Witness():
        pid = os.fork()
        if pid == 0:
            work()
            os.write(tell, b"x")
            os.read(wait, 1)
            os._exit(0)
        os.read(ready, 1)
        pages = footprint.open_pages(pid)
        alone = {page - first for page in footprint.read(pages) if first <= page < first + 64}
        os.write(go, b"x")
        os.waitpid(pid, 0)
        return alone
def write(*pages):
    for page in pages: memory[page * mmap.PAGESIZE] = 2
`
  return (await run(python.path, ['-I', '-B', '-c', prelude + code])).stdout.trim()
}

test.skipIf(!python.ok)('what a process has written to is told, and nothing that others have written to', async () => {
  // the last word is the parent's: what it writes to it no longer shares, but that is no work of its child's
  const code = 'print(sorted(child(lambda: write(3, 4, 5, 40))), sorted(child(lambda: memory[7 * mmap.PAGESIZE])))'
  expect(await printed(code)).toBe('[3, 4, 5, 40] []')
  const meanwhile = `
(wait, go) = os.pipe()
with footprint.Witness():
    pid = os.fork()
    if pid == 0: os.read(wait, 1); os._exit(0)
    write(1, 2)
    alone = footprint.read(footprint.open_pages(pid))
    os.write(go, b"x"); os.waitpid(pid, 0)
print(first + 1 in alone, first + 2 in alone)`
  expect(await printed(meanwhile)).toBe('False False')
})

test.skipIf(!python.ok)('it is copied as one that is written to would be, and keeps what it held', async () => {
  const code = `
pages = footprint.pack({first + page for page in (0, 1, 2, 9, 63)})
def work():
    footprint.copy(pages)
    if any(memory[page * mmap.PAGESIZE] != 1 for page in range(64)): os._exit(1)
print(sorted(child(work)), len(pages) // 16)`
  expect(await printed(code)).toBe('[0, 1, 2, 9, 63] 3')
})
