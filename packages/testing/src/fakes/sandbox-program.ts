import type { FakeRun, FakeSandboxSession } from './sandbox-sessions.ts'
import type { EditorInput } from './sandbox-wire.ts'

/**
 * As much of Python as the conformance checks are written in, one statement a line: `name = 41`, `name = "text"`,
 * `print(<value>)`, `print(name + 1)`, `raise ValueError("…")`, `open("name", "w").write("text")`,
 * `print(open("name").read())`, `import time; time.sleep(3)`. Anything else is a syntax error.
 */
export function runProgram(session: FakeSandboxSession, code: string): FakeRun {
  const run: FakeRun = { stdout: '', stderr: '', returnCode: 0 }
  for (const line of code.split('\n')) {
    if (line.trim() === '') continue
    const failure = runLine(session, line.trim(), run)
    if (failure === undefined) continue
    run.stderr += `Traceback (most recent call last):\n${failure}\n`
    run.returnCode = 1
    break
  }
  return run
}

const statements: [RegExp, (session: FakeSandboxSession, run: FakeRun, ...groups: string[]) => string | undefined][] = [
  [
    /^(\w+) = (.+)$/,
    (session, _run, name, expression) => {
      const value = evaluate(session, expression as string)
      if (value instanceof Error) return value.message
      session.variables.set(name as string, value)
      return undefined
    },
  ],
  [
    /^print\(open\("([^"]+)"\)\.read\(\)\)$/,
    (session, run, path) => {
      const bytes = session.files.get(path as string)
      if (!bytes) return `FileNotFoundError: [Errno 2] No such file or directory: '${path}'`
      run.stdout += `${Buffer.from(bytes).toString('utf8')}\n`
      return undefined
    },
  ],
  [
    /^print\((.+)\)$/,
    (session, run, expression) => {
      const value = evaluate(session, expression as string)
      if (value instanceof Error) return value.message
      run.stdout += `${value}\n`
      return undefined
    },
  ],
  [
    /^open\("([^"]+)", "w"\)\.write\((".*")\)$/,
    (session, _run, path, text) => {
      session.files.set(path as string, Buffer.from(JSON.parse(text as string)))
      return undefined
    },
  ],
  [
    /^import time; time\.sleep\((\d+)\)$/,
    (_session, run, seconds) => {
      run.sleepSeconds = Number(seconds)
      return undefined
    },
  ],
  [/^raise (\w+)\("([^"]*)"\)$/, (_session, _run, kind, text) => `${kind}: ${text}`],
]

function runLine(session: FakeSandboxSession, line: string, run: FakeRun): string | undefined {
  for (const [pattern, perform] of statements) {
    const found = pattern.exec(line)
    if (found) return perform(session, run, ...found.slice(1))
  }
  return 'SyntaxError: invalid syntax'
}

function evaluate({ variables }: FakeSandboxSession, expression: string): string | number | Error {
  if (/^-?\d+$/.test(expression)) return Number(expression)
  if (/^"([^"\\]|\\.)*"$/.test(expression)) return JSON.parse(expression)
  const [, name = '', addend] = /^(\w+)(?: \+ (\d+))?$/.exec(expression) ?? []
  const value = variables.get(name)
  if (value === undefined) return new Error(name ? `NameError: name '${name}' is not defined` : 'SyntaxError')
  return addend === undefined ? value : Number(value) + Number(addend)
}

/** `echo words`, `exit n`, `cat file`. */
export function runShell(session: FakeSandboxSession, command: string): FakeRun {
  const [, echoed] = /^echo (.+)$/.exec(command) ?? []
  if (echoed !== undefined) return { stdout: `${echoed}\n`, stderr: '', returnCode: 0 }
  const [, code] = /^exit (\d+)$/.exec(command) ?? []
  if (code !== undefined) return { stdout: '', stderr: '', returnCode: Number(code) }
  const [, path = ''] = /^cat (\S+)$/.exec(command) ?? []
  const bytes = session.files.get(path)
  if (bytes) return { stdout: Buffer.from(bytes).toString('utf8'), stderr: '', returnCode: 0 }
  return { stdout: '', stderr: `bash: ${command}: not found\n`, returnCode: 127 }
}

const said = (stdout: string): FakeRun => ({ stdout, stderr: '', returnCode: 0 })
const failed = (why: string): FakeRun => ({ stdout: '', stderr: `${why}\n`, returnCode: 1 })

export function runEditor({ files, undo }: FakeSandboxSession, input: EditorInput): FakeRun {
  const bytes = files.get(input.path)
  const text = bytes && Buffer.from(bytes).toString('utf8')
  const write = (changed: string): FakeRun => {
    undo.set(input.path, [...(undo.get(input.path) ?? []), bytes])
    files.set(input.path, Buffer.from(changed))
    return said('done\n')
  }
  if (input.command === 'create') return text === undefined ? write(input.file_text) : failed('the file exists')
  if (input.command === 'undo_edit') {
    const before = undo.get(input.path)?.pop()
    if (!before) return failed('nothing to undo')
    files.set(input.path, before)
    return said('done\n')
  }
  if (text === undefined) return failed('no such file')
  const lines = text.split('\n')
  switch (input.command) {
    case 'view': {
      const [first, last] = input.view_range ?? [1, lines.length]
      return said(lines.slice(first - 1, last).join('\n'))
    }
    case 'str_replace':
      return text.split(input.old_str).length === 2
        ? write(text.replace(input.old_str, () => input.new_str))
        : failed('the text must occur once')
    case 'insert':
      return write([...lines.slice(0, input.insert_line), input.new_str, ...lines.slice(input.insert_line)].join('\n'))
    default:
      return input satisfies never
  }
}
