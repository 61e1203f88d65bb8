import { expect, onTestFinished, test } from 'vitest'
import { type HostEnd, type HostResult, openHost } from '../src/extract/host-process.ts'

const MEMORY = 1024 * 1024 * 1024

/** A host whose process is `plays-host.ts`: it answers what the job says. */
function playedHost() {
  const ends: HostEnd[] = []
  const host = openHost<PlayedJob, HostResult & { nth?: number }>({
    script: new URL('./plays-host.ts', import.meta.url),
    parse: (result) => result as HostResult & { nth?: number },
    failed: (failure) => ({ status: 'failed', failure }),
    memoryBytes: MEMORY,
    startMs: 30_000,
    onEnd: (why) => ends.push(why),
  })
  onTestFinished(() => host.close())
  const read = (job: PlayedJob) => host.read(job, 10_000, new AbortController().signal)
  return { read, ends }
}

type PlayedJob = { heldBytes?: number; failure?: string; failsUnlessFirst?: string }
const ok = (nth: number) => ({ status: 'ok', nth })

test('F-26 a body that finds too little memory after others is read again in a process that has read none', async () => {
  const { read, ends } = playedHost()
  expect(await read({})).toEqual(ok(1))
  expect(await read({})).toEqual(ok(2))
  expect(await read({ failsUnlessFirst: 'memory' })).toEqual(ok(1))
  expect(ends).toEqual(['worn'])
})

test('F-26 a body that needs more memory than there is fails, after one more try at most', async () => {
  const { read, ends } = playedHost()
  expect(await read({ failure: 'memory' })).toMatchObject({ failure: 'memory' })
  expect(ends).toEqual(['worn'])
  expect(await read({})).toEqual(ok(1))
  expect(await read({ failure: 'memory' })).toMatchObject({ failure: 'memory' })
  expect(ends).toEqual(['worn', 'worn', 'worn'])
})

test.each(['time', 'crash'])(
  'F-26 a process in which a body was ended (%s) reads no other, and is not asked twice',
  async (failure) => {
    const { read, ends } = playedHost()
    await read({})
    expect(await read({ failure })).toMatchObject({ failure })
    expect(await read({})).toEqual(ok(1))
    expect(ends).toEqual(['worn'])
  },
)

test.each(['damaged', 'unsupported'])('a body that is %s leaves its process as it was', async (failure) => {
  const { read, ends } = playedHost()
  await read({ failure })
  expect(await read({})).toEqual(ok(2))
  expect(ends).toEqual([])
})

test('F-26 a process that holds three quarters of its memory when a body is done is replaced', async () => {
  const { read, ends } = playedHost()
  await read({ heldBytes: MEMORY * 0.75 })
  expect(await read({ heldBytes: MEMORY * 0.75 + 1 })).toEqual(ok(2))
  expect(await read({})).toEqual(ok(1))
  expect(ends).toEqual(['worn'])
})
