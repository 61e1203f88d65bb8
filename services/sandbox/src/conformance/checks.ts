import { Breach, type ConformanceClient, expectShape, expectStatus, type Reply, shapes, Unserved } from './client.ts'
import { leaseSession, type Ran, withSession } from './session.ts'

export interface Check {
  name: string
  run(client: ConformanceClient): Promise<void>
}

const MARKER = 'conformance-4b1d'
const UNKNOWN = 'sbx-conformance-unknown'

function expectRan({ stdout, stderr, code }: Ran, wanted: string): void {
  if (code !== 0) throw new Breach(`the program ended with ${code}: ${stderr.slice(0, 200)}`)
  if (!stdout.includes(wanted)) throw new Breach(`stdout lacks what the program wrote: ${stdout.slice(0, 200)}`)
}

/** The contract's way to say that a program failed: an exit code or words on stderr, never another status. */
function expectFailed({ stderr, code }: Ran): void {
  if (code === 0 && stderr === '') throw new Breach('a failed program looks like one that ran well')
}

/** A route that is not there answers for itself; its session was there a moment ago. */
function expectServed(reply: Reply): void {
  if ([404, 405, 501].includes(reply.status)) throw new Unserved('file operations are not served')
}

export const sessionChecks: Check[] = [
  {
    name: 'a lease answers 201 with a handle, and hints only shorten it',
    run: (client) =>
      withSession(
        client,
        async ({ idleSeconds }) => {
          if (idleSeconds !== undefined && idleSeconds > 120)
            throw new Breach(`120 s asked for, ${idleSeconds} reported`)
        },
        { idle_timeout_seconds: 120 },
      ),
  },
  {
    name: 'every lease is another session',
    run: (client) =>
      withSession(client, (one) =>
        withSession(client, async (other) => {
          if (one.id === other.id) throw new Breach('two leases, one id')
        }),
      ),
  },
  {
    name: 'members the backend does not know are passed over',
    run: (client) =>
      withSession(
        client,
        async ({ exec }) => {
          const request = { tool: 'code_execution', input: { code: 'print(1)', not_known: 1 }, not_known: {} }
          expectShape(await exec(request), 200, shapes.executed)
        },
        { not_known: [1], image: 'not:known' },
      ),
  },
  {
    name: 'a release answers 204, twice is no failure, and afterwards the session is unknown',
    async run(client) {
      const session = await leaseSession(client)
      expectStatus(await session.release(), 204)
      expectStatus(await session.release(), 204, 404)
      expectStatus(await session.exec({ tool: 'code_execution', input: { code: 'print(1)' } }), 404)
    },
  },
  {
    name: 'an unknown session is a 404',
    async run(client) {
      const json = { tool: 'code_execution', input: { code: 'print(1)' } }
      expectStatus(await client.send('POST', `/sessions/${UNKNOWN}/exec`, { json }), 404)
      expectStatus(await client.send('DELETE', `/sessions/${UNKNOWN}`), 204, 404)
    },
  },
  {
    name: 'variables and files of one session are not there in another',
    run: (client) =>
      withSession(client, async (one) => {
        expectRan(
          await one.python(`secret = "${MARKER}"\nopen("secret.txt", "w").write("${MARKER}")\nprint("kept")`),
          'kept',
        )
        await withSession(client, async (other) => {
          for (const code of ['print(secret)', 'print(open("secret.txt").read())']) {
            const ran = await other.python(code)
            expectFailed(ran)
            if (ran.stdout.includes(MARKER)) throw new Breach('another session read it')
          }
        })
        expectRan(await one.python('print(secret)'), MARKER)
      }),
  },
  {
    name: 'a session that reports an idle timeout is reclaimed after it',
    run: (client) =>
      withSession(
        client,
        async ({ idleSeconds, exec }) => {
          if (idleSeconds === undefined || idleSeconds > 5)
            throw new Unserved('no idle timeout short enough to wait for is reported')
          // half as long again, since reclaiming is the backend's own clock
          await new Promise((done) => setTimeout(done, idleSeconds * 1_500 + 1_000))
          expectStatus(await exec({ tool: 'code_execution', input: { code: 'print(1)' } }), 404)
        },
        { idle_timeout_seconds: 1 },
      ),
  },
]

export const callChecks: Check[] = [
  {
    name: 'code runs, and its result is a nested block',
    run: (client) =>
      withSession(client, async ({ python }) => {
        const ran = await python(`print("${MARKER}")`)
        expectRan(ran, MARKER)
        if (ran.type !== 'code_execution_tool_result') throw new Breach(`the block's type is ${ran.type}`)
      }),
  },
  {
    name: 'tool_use_id is echoed, and made when absent',
    run: (client) =>
      withSession(client, async ({ exec }) => {
        const request = { tool: 'code_execution', input: { code: 'print(1)' } }
        const echoed = expectShape(await exec({ ...request, tool_use_id: MARKER }), 200, shapes.executed)
        if (echoed.tool_use_id !== MARKER) throw new Breach('it was not echoed')
        const made = expectShape(await exec(request), 200, shapes.executed)
        if (made.tool_use_id === '') throw new Breach('none was made')
      }),
  },
  {
    name: 'variables of one call are there for the next',
    run: (client) =>
      withSession(client, async ({ python }) => {
        await python('x = 40')
        expectRan(await python('print(x + 2)'), '42')
      }),
  },
  {
    name: 'a program that fails is a 200 that says so',
    run: (client) =>
      withSession(client, async ({ python }) => {
        expectFailed(await python('raise ValueError("conformance")'))
        expectRan(await python('print(1)'), '1')
      }),
  },
  {
    name: 'a program that outlasts its timeout is stopped, and the call answered',
    run: (client) =>
      withSession(client, async ({ python }) => expectFailed(await python('import time; time.sleep(60)', 1))),
  },
  {
    name: 'a shell command runs in the same workspace, with its exit code',
    run: (client) =>
      withSession(client, async ({ run, python }) => {
        const ran = await run('bash_code_execution', { command: `echo ${MARKER}` })
        expectRan(ran, MARKER)
        if (ran.type !== 'bash_code_execution_tool_result') throw new Breach(`the block's type is ${ran.type}`)
        expectFailed(await run('bash_code_execution', { command: 'exit 3' }))
        await python(`open("shared.txt", "w").write("${MARKER}")`)
        expectRan(await run('bash_code_execution', { command: 'cat shared.txt' }), MARKER)
      }),
  },
  {
    name: 'the editor creates, views, replaces, inserts and undoes',
    run: (client) =>
      withSession(client, async ({ run }) => {
        const edit = (command: string, rest: object = {}) =>
          run('text_editor_code_execution', { command, path: 'edited.txt', ...rest })
        const made = await edit('create', { file_text: 'one\ntwo\n' })
        expectRan(made, '')
        if (made.type !== 'text_editor_code_execution_tool_result') throw new Breach(`the block's type is ${made.type}`)
        expectRan(await edit('view'), 'two')
        expectRan(await edit('str_replace', { old_str: 'two', new_str: MARKER }), '')
        expectRan(await edit('insert', { insert_line: 0, new_str: 'zero' }), '')
        expectRan(await edit('view'), 'zero')
        expectRan(await edit('undo_edit'), '')
        const viewed = await edit('view')
        expectRan(viewed, MARKER)
        if (viewed.stdout.includes('zero')) throw new Breach('the edit was not undone')
        expectFailed(await edit('str_replace', { old_str: 'not there', new_str: 'x' }))
      }),
  },
  {
    name: 'an unknown tool is refused',
    run: (client) =>
      withSession(client, async ({ exec }) => expectStatus(await exec({ tool: 'no_such_tool', input: {} }), 400, 422)),
  },
  {
    name: 'a malformed call is refused',
    run: (client) =>
      withSession(client, async ({ exec }) => {
        for (const request of [
          { tool: 'code_execution' },
          { tool: 'code_execution', input: {} },
          { tool: 'code_execution', input: { code: '' } },
          { tool: 'bash_code_execution', input: { code: 'ls' } },
          { tool: 'text_editor_code_execution', input: { command: 'create', path: 'x' } },
          { tool: 'text_editor_code_execution', input: { command: 'no_such_command', path: 'x' } },
          { tool: 'code_execution', input: { code: 'print(1)' }, timeout_seconds: 0 },
        ])
          expectStatus(await exec(request), 400, 422)
      }),
  },
]

export const fileChecks: Check[] = [
  {
    name: 'a file that is put is listed, read back and seen by code',
    run: (client) =>
      withSession(client, async ({ put, file, python }) => {
        const reply = await put('given.txt', MARKER)
        expectServed(reply)
        expectShape(reply, 201, shapes.written)
        const { files } = expectShape(await file('GET', 'files/list?path=.'), 200, shapes.listing)
        const listed = files.find(({ path }) => path.endsWith('given.txt'))
        if (listed?.size_bytes !== MARKER.length) throw new Breach('it is not listed with its size')
        const got = await file('GET', 'files?path=given.txt')
        expectStatus(got, 200)
        if (got.bytes.toString() !== MARKER) throw new Breach('what is read is not what was put')
        expectRan(await python('print(open("given.txt").read())'), MARKER)
      }),
  },
  {
    name: 'a path that leaves the workspace is refused',
    run: (client) =>
      withSession(client, async ({ put, file }) => {
        expectServed(await put('inside.txt', 'x'))
        for (const path of ['../../etc/passwd', '/etc/passwd', 'a/../../x'])
          expectStatus(await file('GET', `files?path=${encodeURIComponent(path)}`), 403, 404)
        expectStatus(await file('GET', `files/list?path=${encodeURIComponent('../..')}`), 403, 404)
        expectStatus(await put('../outside.txt', 'x'), 403)
      }),
  },
  {
    name: 'a folder is not a file, and what is not there is a 404',
    run: (client) =>
      withSession(client, async ({ put, file }) => {
        expectServed(await put('folder/inside.txt', 'x'))
        expectStatus(await file('GET', 'files?path=folder'), 400)
        expectStatus(await file('GET', 'files?path=missing.txt'), 404)
        expectStatus(await file('GET', 'files/list?path=missing'), 404)
      }),
  },
  {
    name: 'an upload without its file is refused, files of an unknown session are a 404',
    run: (client) =>
      withSession(client, async ({ put, file }) => {
        expectServed(await put('inside.txt', 'x'))
        const form = new FormData()
        form.set('path', 'only-a-path.txt')
        expectStatus(await file('POST', 'files', form), 400, 422)
        expectStatus(await client.send('GET', `/sessions/${UNKNOWN}/files?path=a`), 404)
        expectStatus(await client.send('GET', `/sessions/${UNKNOWN}/files/list`), 404)
      }),
  },
]
