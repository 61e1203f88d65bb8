import { Breach, expectShape, expectStatus, shapes } from './client.ts'
import { type Check, expectFailed, expectRan, MARKER } from './expect.ts'
import { withSession } from './session.ts'

/** CP-07 to CP-14, CP-17: the three kinds of call. */
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
