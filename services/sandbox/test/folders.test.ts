import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { makeFolder, removeLeftovers, socketIn } from '../src/drivers/folders.ts'

let temporary = ''

beforeEach(() => {
  temporary = mkdtempSync(join(tmpdir(), 'folders-'))
  vi.stubEnv('TMPDIR', temporary)
  onTestFinished(() => {
    vi.unstubAllEnvs()
    rmSync(temporary, { recursive: true, force: true })
  })
})

/** The number of a process that is no more. */
const deadProcess = (): number => spawnSync('true').pid

function folderOf(owner: string | number): string {
  const folder = join(temporary, `tollgate-sandbox-${owner}-a1b2c3`)
  mkdirSync(join(folder, 'sockets'), { recursive: true })
  mkdirSync(join(folder, 'sessions', '0'), { recursive: true })
  return folder
}

test('H2 what a killed server and its zygote left is removed with everything in it', async () => {
  const left = folderOf(deadProcess())
  await removeLeftovers()
  expect(existsSync(left)).toBe(false)
})

test('H2 what belongs to a running server, to nobody known and to others stays', async () => {
  const own = await makeFolder()
  const kept = [own, folderOf(1), folderOf('x'), folderOf(''), join(temporary, `tollgate-other-${deadProcess()}-a`)]
  mkdirSync(kept.at(-1) as string)
  await removeLeftovers()
  expect(kept.filter((folder) => !existsSync(folder))).toEqual([])
})

test('H2 a folder in which somebody listens stays, though its server is not among the processes seen here', async () => {
  const shared = folderOf(deadProcess())
  const server = createServer().listen(socketIn(shared))
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  await removeLeftovers()
  expect(existsSync(shared)).toBe(true)
})
