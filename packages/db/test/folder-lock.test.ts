import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { lockFolder } from '../src/folder-lock.ts'
import { ownIdentity } from '../src/process-identity.ts'

let home: string
let folder: string
let lock: string
const children: ChildProcess[] = []

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'lock-'))
  folder = join(home, 'db')
  lock = `${folder}.lock`
})
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
  await rm(home, { recursive: true, force: true })
})

/** Another process that takes the lock and keeps it, or says why it could not. */
async function contender(): Promise<{ child: ChildProcess; said: string }> {
  const source = `
    const { lockFolder } = await import(${JSON.stringify(new URL('../src/folder-lock.ts', import.meta.url).href)})
    try { await lockFolder(${JSON.stringify(folder)}); console.log('locked') } catch (error) { console.log(error.message) }
    setInterval(() => {}, 1000)`
  const loader = new URL('../../../scripts/ts.mjs', import.meta.url).href
  const child = spawn(process.execPath, ['--import', loader, '--input-type=module', '-e', source], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  children.push(child)
  const [said] = await once(child.stdout!, 'data')
  return { child, said: String(said).trim() }
}

test('a second process on the folder is refused with one sentence that says what to do', async () => {
  const { child, said } = await contender()
  expect(said).toBe('locked')
  await expect(lockFolder(folder)).rejects.toThrow(
    `${folder} is in use by process ${child.pid}: stop it, give this one another folder, or use Postgres for both`,
  )
  expect((await contender()).said).toContain(`is in use by process ${child.pid}`)
})

test('the lock of a killed process is taken over at once', async () => {
  const { child } = await contender()
  child.kill('SIGKILL')
  await once(child, 'exit')
  expect(existsSync(lock)).toBe(true)
  const unlock = await lockFolder(folder)
  expect(JSON.parse(await readFile(lock, 'utf8')).pid).toBe(process.pid)
  await unlock()
  expect(existsSync(lock)).toBe(false)
})

test('a lock whose number now belongs to another process is taken over', async () => {
  await writeFile(lock, JSON.stringify({ ...(await ownIdentity()), began: '1' }))
  const unlock = await lockFolder(folder)
  await unlock()
})

test('of many that find a stale lock, one gets it', async () => {
  await writeFile(lock, JSON.stringify({ ...(await ownIdentity()), began: '1' }))
  const tries = await Promise.allSettled(Array.from({ length: 12 }, () => lockFolder(folder)))
  expect(tries.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
})

test('a holder that cannot be seen from here is believed while it touches its lock', async () => {
  await writeFile(lock, JSON.stringify({ pid: 1, began: null, realm: 'another container' }))
  const beat = setInterval(() => void utimes(lock, new Date(), new Date()).catch(() => {}), 100)
  await expect(lockFolder(folder)).rejects.toThrow('in use by process 1')
  clearInterval(beat)
})

test('a holder that cannot be seen from here and is silent is taken over', async () => {
  await writeFile(lock, JSON.stringify({ pid: 1, began: null, realm: 'another container' }))
  const longAgo = new Date(Date.now() - 60_000)
  await utimes(lock, longAgo, longAgo)
  await (await lockFolder(folder))()
})

test('a file that is no lock of ours is left alone', async () => {
  await writeFile(lock, 'mine')
  await expect(lockFolder(folder)).rejects.toThrow(`${lock} is not a lock of ours`)
  expect(await readFile(lock, 'utf8')).toBe('mine')
})

test('giving back leaves the lock of a process that took over', async () => {
  const unlock = await lockFolder(folder)
  await writeFile(lock, 'somebody else')
  await unlock()
  expect(await readFile(lock, 'utf8')).toBe('somebody else')
})
