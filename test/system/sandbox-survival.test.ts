import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Database, openDb } from '@tollgate/db'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { alive, descendantsOf, processesWith } from '../../services/sandbox/test/host.ts'
import { makeKey, setPrice } from './client.ts'
import { type Deployment, startDeployment } from './deployment.ts'
import { seeded, seedOf } from './random.ts'
import { comeBack, type Doors, type Ending, type Job, openDoors } from './sandbox-jobs.ts'

const SESSIONS = 200
const CLIENTS = 24
/** A request's own deadline, and when its client must have heard of its end. */
const REQUEST_MS = 20_000
const PATIENCE_MS = REQUEST_MS + 5_000
/** C-17: how long a claim holds that nobody renews. */
const CLAIM_SECONDS = 60
/**
 * Sessions that one death of the broker may leave to the backend's own clocks: those it had heard of and not told of yet.
 * All others are given back once it is there again.
 */
const UNTOLD = 3

const victims = ['sandbox', 'zygote', 'zygote', 'sandbox-broker'] as const
type Victim = (typeof victims)[number]

const random = seeded(seedOf('sandbox-survival'))
const between = (least: number, most: number): number => least + random() * (most - least)

/** Real code in the real sandbox, whose processes die under the requests of real clients. */
describe('a sandbox whose processes are killed', () => {
  const temporary = mkdtempSync(join(tmpdir(), 'sandbox-survival-'))
  chmodSync(temporary, 0o755)
  let deployment: Deployment
  let doors: Doors
  let db: Database
  /** Every process that ever came from a sandbox server. */
  const family = new Set<number>()

  beforeAll(async () => {
    deployment = await startDeployment('services', {
      env: {
        TMPDIR: temporary,
        OTARI_REQUEST_TIMEOUT_MS: String(REQUEST_MS),
        // kept ones have their places until they have idled away
        OTARI_SANDBOX_MAX_SESSIONS: '500',
      },
      only: ['gateway', 'sandbox-broker', 'billing', 'sandbox'],
    })
    db = await openDb({ url: deployment.databaseUrl ?? '', log: { warn: () => undefined }, poolSize: 1 })
    await setPrice(deployment, 'demo:*', 0)
    await setPrice(deployment, 'otari:code_execution', 1_234)
    doors = openDoors(deployment, await makeKey(deployment), PATIENCE_MS)
  }, 240_000)
  afterAll(async () => {
    await db?.close()
    await deployment?.stop()
    rmSync(temporary, { recursive: true, force: true })
  }, 60_000)

  interface Row {
    id: string
    session: string
    claim: string | null
  }
  const rows = async () =>
    (await db.prepare('rows', 'select id, session, claim from sandbox.containers')([])) as unknown as Row[]
  const moveClaims = (to: string) =>
    db.prepare(to, `update sandbox.containers set claim_ends_at = ${to} where claim is not null`)([])
  /** The time of a claim passes for each that there is. */
  const ageClaims = () => moveClaims(`claim_ends_at - interval '${CLAIM_SECONDS} s'`)

  const backend = (): string => /"url":"(http:[^"]+)"/.exec(deployment.logs('sandbox'))?.[1] ?? ''
  /** Sessions that someone has, without those that are kept for a later request. */
  async function unkept(): Promise<number> {
    const health = (await (await fetch(`${backend()}/health`)).json()) as { sessions: { leased: number } }
    const lists = (await rows()).map(({ session }) => fetch(`${backend()}/sessions/${session}/files/list`))
    return health.sessions.leased - (await Promise.all(lists)).filter(({ ok }) => ok).length
  }

  const note = () => {
    for (const pid of descendantsOf(deployment.process('sandbox').pid)) family.add(pid)
  }
  async function restart(name: 'gateway' | 'sandbox' | 'sandbox-broker') {
    deployment.start(name)
    await deployment.ready(name)
  }
  /** False where there is nothing to kill just now. Whatever died is back, or will be by itself. */
  async function kill(victim: Victim): Promise<boolean> {
    note()
    if (victim !== 'zygote') {
      await deployment.kill(victim, 'SIGKILL')
      await restart(victim)
      return true
    }
    const pid = descendantsOf(deployment.process('sandbox').pid).find((one) => commandOf(one).includes('zygote.py'))
    if (pid !== undefined) process.kill(pid, 'SIGKILL')
    return pid !== undefined
  }

  const run = (code: string, says: string, container?: string) => doors.direct({ code, says, container, stream: false })
  /** A container that has ended its first request. */
  async function keep(): Promise<string> {
    const first = await run('kept = 41\nprint(kept)', '41', 'auto')
    expect(first).toMatchObject({ kind: 'ran', container: expect.stringMatching(/^otari_cntr_/) })
    return (first as Ending & { kind: 'ran' }).container ?? ''
  }

  test('BR-126 BR-128 at random under 200 sessions: clear ends, none late, and the next request works', async () => {
    const endings: Ending[] = []
    const ran = () => endings.filter(({ kind }) => kind === 'ran').length
    const idle = await Promise.all([keep(), keep(), keep()])
    let over = false

    const send = async (door: keyof Doors, job: Job) => {
      const ending = await doors[door](job)
      endings.push(ending)
      if (ending.kind !== 'ran') await comeBack()
      return ending
    }
    const client = async () => {
      while (!over || endings.length < SESSIONS) {
        const door = random() < 0.5 ? 'direct' : 'chat'
        const stream = random() < 0.5
        const takes = `import time; time.sleep(${between(0, 0.3).toFixed(3)})\n`
        if (random() < 0.7) {
          await send(door, { code: `${takes}print(6 * 7)`, says: '42', stream })
          continue
        }
        const first = await send(door, {
          code: `${takes}kept = 41; print(kept)`,
          says: '41',
          stream,
          container: 'auto',
        })
        if (first.kind !== 'ran' || first.container === undefined) continue
        // either what it was, or said to be gone: never another one in its place
        await send(door, { code: `${takes}print(kept + 1)`, says: '42', stream, container: first.container })
      }
    }
    const killing = async () => {
      for (const victim of shuffled(victims)) {
        const next = ran() + Math.ceil(between(1, 25))
        await expect.poll(ran, { timeout: 90_000, interval: 5 }).toBeGreaterThanOrEqual(next)
        await expect.poll(() => kill(victim), { timeout: 60_000, interval: 20 }).toBe(true)
      }
    }
    const clients = Array.from({ length: CLIENTS }, client)
    await killing().finally(() => {
      over = true
    })
    await Promise.all(clients)

    expect(endings.length).toBeGreaterThanOrEqual(SESSIONS)
    expect(endings.filter(({ kind }) => kind !== 'ran' && kind !== 'told')).toEqual([])
    expect(endings.filter((ending) => ending.kind === 'told' && !isClear(ending))).toEqual([])

    await expect.poll(() => run('print(1)', '1'), { timeout: 30_000 }).toMatchObject({ kind: 'ran' })
    for (const door of ['direct', 'chat'] as const) {
      for (const stream of [false, true])
        expect(await doors[door]({ code: 'print(1)', says: '1', stream })).toMatchObject({ kind: 'ran' })
    }
    const deaths = victims.filter((victim) => victim === 'sandbox-broker').length
    await expect.poll(unkept, { timeout: 30_000 }).toBeLessThanOrEqual(UNTOLD * deaths)

    // no row went with a broker, and no claim outlives its time
    const left = await rows()
    expect(left.map(({ id }) => id)).toEqual(expect.arrayContaining(idle))
    await ageClaims()
    for (const { id } of left.filter(({ claim }) => claim !== null)) {
      const ending = await run('print(1)', '1', id)
      expect(ending).not.toMatchObject({ status: 409 })
      expect(ending.kind === 'ran' || (ending.kind === 'told' && isClear(ending))).toBe(true)
    }
    await expect.poll(async () => (await rows()).filter(({ claim }) => claim !== null)).toEqual([])
  }, 300_000)

  /** A run in a container that is under way for sure, for so many seconds. */
  async function startSleeping(id: string, seconds: number): Promise<{ running: Promise<Ending> }> {
    // told from every other sleep by its fraction
    const time = `${seconds}.${process.pid}`
    const running = run(`import subprocess; subprocess.run(["sleep", "${time}"])`, '', id)
    await expect.poll(() => processesWith(`sleep ${time}`).length, { timeout: 10_000 }).toBe(1)
    return { running }
  }

  test('C-16 C-17 a gateway that dies over a run has its container for a minute, and no longer', async () => {
    const id = await keep()
    const { running } = await startSleeping(id, 4)
    await deployment.kill('gateway', 'SIGKILL')
    expect(await running).toEqual({ kind: 'cut' })
    await restart('gateway')
    // as if it had died just now, however long the other took to start
    await moveClaims(`now() + interval '${CLAIM_SECONDS} s'`)
    expect(await run('print(kept + 1)', '42', id)).toMatchObject({ kind: 'told', status: 409 })
    await ageClaims()
    expect(await run('print(kept + 1)', '42', id)).toEqual({ kind: 'ran', container: id })
    expect(await claimOf(id)).toBeNull()
  }, 240_000)

  test('C-17 C-18 a broker that dies over a run loses no container, which is free once it is there again', async () => {
    const id = await keep()
    const before = await rows()
    const { running } = await startSleeping(id, 8)
    await deployment.kill('sandbox-broker', 'SIGKILL')
    expect(await running).toMatchObject({ kind: 'told', status: 503 })
    await restart('sandbox-broker')
    expect((await rows()).map((row) => row.id)).toEqual(before.map((row) => row.id))
    await expect
      .poll(() => run('print(kept + 1)', '42', id), { timeout: (CLAIM_SECONDS + 15) * 1_000 })
      .toEqual({ kind: 'ran', container: id })
  }, 240_000)

  test('BR-126 no process, no mount and no folder remains', async () => {
    note()
    expect(family.size).toBeGreaterThan(victims.length)
    const { code } = await deployment.kill('sandbox', 'SIGTERM')
    expect(code).toBe(0)
    await expect.poll(() => alive([...family]), { timeout: 10_000 }).toEqual([])
    expect(readFileSync('/proc/self/mounts', 'utf8')).not.toContain(temporary)
    expect(readdirSync(temporary).filter((name) => name.startsWith('tollgate-sandbox'))).toEqual([])
  })

  const claimOf = async (id: string) => (await rows()).find((row) => row.id === id)?.claim
})

/** What may be said of a sandbox that is not there, and the status it may be said with; 200 is what a model is told. */
const clear: [status: number, detail: RegExp][] = [
  [400, /^Container 'otari_cntr_[0-9a-f]{32}' has expired or does not exist\.$/],
  [409, /^Container is in use by another request\./],
  [502, /^code_execution sandbox (unreachable|was lost, and with it every variable and file)/],
  [503, /^(code_execution sandbox temporarily unavailable|a service needed for this )/],
  [504, /^(code execution timed out|the request took too long|this took longer than it may)$/],
  [200, /^code_execution sandbox (unreachable|was lost|temporarily unavailable)|^code execution timed out$/],
  [200, /^an error in the stream$/],
]
const isClear = ({ status, detail }: Ending & { kind: 'told' }): boolean =>
  clear.some(([allowed, words]) => allowed === status && words.test(detail))

const shuffled = <T>(list: readonly T[]): T[] =>
  list
    .map((item) => ({ item, at: random() }))
    .sort((one, other) => one.at - other.at)
    .map(({ item }) => item)

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return '' // it ended meanwhile
  }
}
