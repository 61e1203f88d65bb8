import type { Bus } from '@tollgate/bus'
import { sandboxExec, sandboxSeed } from '@tollgate/contracts'
import { workspaceNames } from '@tollgate/files'
import type { FakeSandboxOptions } from '@tollgate/testing'
import { describe, expect, test } from 'vitest'
import { content, lease, run, soon, start, tenancy } from './rig.ts'

describe('files for the code', () => {
  const reference = (id: string, name: string) => ({ id, name, mediaType: 'text/csv', bytes: 3 })

  test('FI-12 stored files are put into the session, under the names that are told', async () => {
    const { bus, backend, files } = await start({ store: true })
    await files.put('file-1', content('a,b'), { maxBytes: 100 })
    await files.put('file-2', content('c,d'), { maxBytes: 100 })
    const session = await lease(bus)
    const seeded = await bus.call(
      sandboxSeed,
      { tenancy, session, files: [reference('file-1', 'x/data.csv'), reference('file-2', 'data.csv')] },
      soon(),
    )
    expect(seeded).toEqual({ names: ['data.csv', 'data-2.csv'] })
    const held = backend.sessions.get(session)?.files
    expect([...(held ?? [])].map(([path, bytes]) => [path, Buffer.from(bytes).toString()])).toEqual([
      ['data.csv', 'a,b'],
      ['data-2.csv', 'c,d'],
    ])
  })

  test('FI-16 a file that the sandbox refuses fails the request', async () => {
    const { bus, files } = await start({ maxFileBytes: 2, store: true })
    await files.put('file-1', content('a,b'), { maxBytes: 100 })
    const session = await lease(bus)
    const seeding = bus.call(sandboxSeed, { tenancy, session, files: [reference('file-1', 'data.csv')] }, soon())
    await expect(seeding).rejects.toMatchObject({ failure: 'upstream', status: 502 })
  })

  test('a file that is not stored is not found', async () => {
    const { bus } = await start({ store: true })
    const session = await lease(bus)
    const seeding = bus.call(sandboxSeed, { tenancy, session, files: [reference('file-9', 'data.csv')] }, soon())
    await expect(seeding).rejects.toMatchObject({ failure: 'not_found' })
  })

  test.each([
    [
      ['data.csv', 'data.csv', 'DATA.csv'],
      ['data.csv', 'data-2.csv', 'DATA-3.csv'],
    ],
    [
      ['../../etc/passwd', 'C:\\secret\\x.txt'],
      ['passwd', 'x.txt'],
    ],
    [
      ['', '..', '/', '...'],
      ['file', 'file-2', 'file-3', 'file-4'],
    ],
    [
      ['a;rm -rf ~.csv', 'über straße.csv', '$(x).py', 'tab\tnew\nline'],
      ['arm -rf .csv', 'über straße.csv', '(x).py', 'tabnewline'],
    ],
    [
      ['.bashrc', '-rf'],
      ['bashrc', 'rf'],
    ],
    [
      ['a.tar.gz', 'a.tar.gz'],
      ['a.tar.gz', 'a.tar-2.gz'],
    ],
    [
      [`${'x'.repeat(300)}.csv`, '😀\ud800.txt'],
      [`${'x'.repeat(96)}.csv`, 'txt'],
    ],
  ])('FI-13 %j become %j', (names, expected) => {
    expect(workspaceNames(names.map((name) => ({ name })))).toEqual(expected)
  })
})

describe('files the code made', () => {
  /** A backend whose calls name files in the block, which the fake itself never does. */
  const naming = (...names: string[]): FakeSandboxOptions => ({
    respond: ({ operation }) =>
      operation !== 'exec'
        ? undefined
        : {
            status: 200,
            body: {
              tool_use_id: 't',
              result_block: {
                type: 't',
                tool_use_id: 't',
                content: { content: names.map((filename) => ({ file_id: filename, filename })) },
              },
            },
          },
  })
  const filesOf = async (bus: Bus, session: string, code: string) => {
    const done = await run(bus, session, code)
    if (done.status !== 'ok') throw new Error(done.reason)
    return done.files
  }
  const textOf = async (stored: { content: AsyncIterable<Uint8Array> } | undefined) => {
    const chunks = []
    for await (const chunk of stored?.content ?? []) chunks.push(chunk)
    return Buffer.concat(chunks).toString()
  }

  test('without a store they are named and stay where they are', async () => {
    const { bus, backend } = await start(naming('a.csv', 'b.csv'))
    expect(await filesOf(bus, await lease(bus), 'x')).toEqual([{ name: 'a.csv' }, { name: 'b.csv' }])
    expect(backend.requests.map(({ operation }) => operation)).toEqual(['create', 'exec'])
  })

  test('FI-20 FI-21 what the listing shows as new or changed is stored, what was given is not', async () => {
    const { bus, files } = await start({ store: true })
    await files.put('file-1', content('given'), { maxBytes: 100 })
    const session = await lease(bus)
    const given = { id: 'file-1', name: 'given.csv', mediaType: 'text/csv', bytes: 5 }
    await bus.call(sandboxSeed, { tenancy, session, files: [given] }, soon())
    const [made, ...rest] = await filesOf(bus, session, 'open("out.txt", "w").write("hello")')
    expect(rest).toEqual([])
    expect(made).toEqual({
      name: 'out.txt',
      file: {
        id: expect.stringMatching(/^file-[0-9a-f]{32}$/),
        name: 'out.txt',
        mediaType: 'text/plain',
        bytes: 5,
      },
    })
    expect(await textOf(await files.get(made?.file?.id ?? ''))).toBe('hello')
    expect(await filesOf(bus, session, 'print(1)')).toEqual([])
    expect((await filesOf(bus, session, 'open("given.csv", "w").write("changed")')).map(({ name }) => name)).toEqual([
      'given.csv',
    ])
  })

  test('FI-26 each has a media type by its name, else by its first bytes', async () => {
    const made: [string, string][] = [
      ['chart.png', 'x'],
      ['data.csv', 'a,b'],
      ['plot', '\x89PNG\r\n\x1a\n'],
      ['unknown', 'a,b'],
    ]
    const { bus, backend } = await start({ ...naming(...made.map(([name]) => name)), store: true })
    const session = await lease(bus)
    for (const [name, text] of made) backend.sessions.get(session)?.files.set(name, Buffer.from(text, 'latin1'))
    expect((await filesOf(bus, session, 'x')).map(({ file }) => file?.mediaType)).toEqual([
      'image/png',
      'text/csv',
      'image/png',
      'application/octet-stream',
    ])
  })

  test('FI-20 what the block names is stored where there is no listing, and once where there are both', async () => {
    const unlisted = await start({ ...naming('a.txt'), files: false, store: true })
    expect(await filesOf(unlisted.bus, await lease(unlisted.bus), 'x')).toEqual([{ name: 'a.txt' }])
    const both = await start({ ...naming('a.txt'), store: true })
    const session = await lease(both.bus)
    both.backend.sessions.get(session)?.files.set('a.txt', Buffer.from('named'))
    expect(await filesOf(both.bus, session, 'x')).toMatchObject([{ name: 'a.txt', file: { bytes: 5 } }])
  })

  test('FI-22 more than may be are named without an id, empty ones not at all', async () => {
    const names = Array.from({ length: 25 }, (_, index) => `f${String(index).padStart(2, '0')}`)
    const { bus, backend } = await start({
      ...naming(...names, 'empty'),
      store: true,
      settings: { outputMaxFiles: 22 },
    })
    const session = await lease(bus)
    for (const name of names) backend.sessions.get(session)?.files.set(name, Buffer.from(name))
    backend.sessions.get(session)?.files.set('f03', Buffer.alloc(0))
    const produced = await filesOf(bus, session, 'x')
    expect(produced.map(({ name }) => name)).toEqual([...names.filter((name) => name !== 'f03'), 'empty'])
    expect(produced.filter(({ file }) => file).length).toBe(21)
  })

  test('FI-22 one that cannot be stored in the time of the call does not cost the run', async () => {
    const named = naming('stuck', 'late')
    const { bus, backend } = await start({
      store: true,
      respond: (request) =>
        request.operation === 'get' && request.target.endsWith('=stuck')
          ? new Promise<never>(() => {})
          : named.respond?.(request),
    })
    const session = await lease(bus)
    backend.sessions.get(session)?.files.set('late', Buffer.from('late'))
    expect(
      await bus.call(sandboxExec, { tenancy, session, code: 'x' }, { deadline: Date.now() + 6_000 }),
    ).toMatchObject({
      status: 'ok',
      files: [{ name: 'stuck' }, { name: 'late' }],
    })
    expect(backend.requests.filter(({ operation }) => operation === 'get')).toHaveLength(1)
  })

  test('FI-20 a listing that does not come after the run does not cost it', async () => {
    let listings = 0
    const { bus } = await start({
      store: true,
      respond: ({ operation }) => {
        if (operation !== 'list') return undefined
        listings += 1
        return listings > 1 ? new Promise<never>(() => {}) : undefined
      },
    })
    const session = await lease(bus)
    expect(
      await bus.call(sandboxExec, { tenancy, session, code: 'print(1)' }, { deadline: Date.now() + 6_000 }),
    ).toMatchObject({ status: 'ok', stdout: '1\n', files: [] })
    expect(listings).toBe(2)
  })

  test('FI-22 one over the bytes that are left, or that cannot be fetched, is named and leaves nothing', async () => {
    const { bus, backend, files } = await start({
      ...naming('big', 'gone', 'small'),
      store: true,
      settings: { outputMaxBytes: 10 },
    })
    const session = await lease(bus)
    backend.sessions.get(session)?.files.set('big', Buffer.alloc(11))
    backend.sessions.get(session)?.files.set('small', Buffer.from('1234567'))
    const produced = await filesOf(bus, session, 'x')
    expect(produced).toEqual([
      { name: 'big' },
      { name: 'gone' },
      { name: 'small', file: expect.objectContaining({ bytes: 7 }) },
    ])
    expect(await files.stat(produced[2]?.file?.id ?? '')).toBeTruthy()
  })
})
