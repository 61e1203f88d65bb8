import { posix } from 'node:path'
import { z } from 'zod'
import { FileRefused, PIECE_BYTES } from './drivers/driver.ts'
import type { Session } from './sessions.ts'

const path = z.string().min(1).max(4_096)

/** What each command needs, besides which nothing is looked at (CP-08). */
export const editorInput = z.discriminatedUnion('command', [
  z.object({ command: z.literal('view'), path, view_range: z.tuple([z.int(), z.int()]).nullish() }),
  z.object({ command: z.literal('create'), path, file_text: z.string() }),
  z.object({ command: z.literal('str_replace'), path, old_str: z.string().min(1), new_str: z.string() }),
  z.object({ command: z.literal('insert'), path, insert_line: z.int(), new_str: z.string() }),
  z.object({ command: z.literal('undo_edit'), path }),
])
export type EditorInput = z.output<typeof editorInput>

/** As a program would report it. */
export type EditorResult = { ok: true; stdout: string } | { ok: false; why: string }

/** Larger files are for programs. Read and written in one piece. */
const MAX_EDITED_BYTES = PIECE_BYTES
const VIEWED_BYTES = 512 * 1024

const done = (stdout: string): EditorResult => ({ ok: true, stdout: `${stdout}\n` })
const failed = (why: string): EditorResult => ({ ok: false, why })

/** Views and edits a file with the session's own rights. A command that cannot be done is a result, not a failure. */
export async function edit(session: Session, input: EditorInput): Promise<EditorResult> {
  try {
    return await perform(session, input)
  } catch (thrown) {
    if (thrown instanceof FileRefused) return failed(`${input.path}: ${thrown.message}`)
    throw thrown
  }
}

async function perform(session: Session, input: EditorInput): Promise<EditorResult> {
  switch (input.command) {
    case 'view':
      return view(session, input)
    case 'create':
      await session.sandbox.save(input.path, Buffer.from(input.file_text.toWellFormed()), { exclusive: true })
      return done(`File created: ${input.path}`)
    case 'str_replace': {
      const { text, before } = await read(session, input.path)
      const found = text.split(input.old_str).length - 1
      if (found === 0) return failed(`old_str does not occur in ${input.path}`)
      if (found > 1) return failed(`old_str occurs ${found} times in ${input.path}; it must be unique`)
      await change(
        session,
        input.path,
        before,
        text.replace(input.old_str, () => input.new_str),
      )
      return done(`Edited ${input.path}`)
    }
    case 'insert': {
      const { text, before } = await read(session, input.path)
      const lines = text.match(/[^\n]*\n|[^\n]+$/g) ?? []
      const line = input.insert_line
      if (line < 0 || line > lines.length)
        return failed(`insert_line ${line} is not between 0 and ${lines.length}, the number of lines of ${input.path}`)
      const last = lines[line - 1]
      if (last !== undefined && !last.endsWith('\n')) lines[line - 1] = `${last}\n`
      const added = input.new_str.endsWith('\n') ? input.new_str : `${input.new_str}\n`
      await change(session, input.path, before, [...lines.slice(0, line), added, ...lines.slice(line)].join(''))
      return done(`Inserted into ${input.path}`)
    }
    case 'undo_edit':
      return undo(session, input.path)
    default:
      return input satisfies never
  }
}

async function view(session: Session, { path, view_range }: EditorInput & { command: 'view' }): Promise<EditorResult> {
  const viewed = await session.sandbox.view(path, VIEWED_BYTES)
  if ('names' in viewed) return { ok: true, stdout: viewed.names.map((name) => `${name}\n`).join('') }
  const { data, size } = viewed
  if (data.includes(0)) return failed(`${path} is not a text file`)
  const text = data.toString('utf8') + (size > data.length ? `\n[view cut: ${size - data.length} more bytes]` : '')
  if (!view_range) return { ok: true, stdout: text }
  const lines = text.split('\n')
  const [first, last] = view_range
  const end = last === -1 ? lines.length : last
  if (first < 1 || end < first) return failed(`view_range [${first}, ${last}] is not a range of lines`)
  return { ok: true, stdout: lines.slice(first - 1, end).join('\n') }
}

/** Only what this editor wrote is undone: what a program has changed since would be lost otherwise. */
async function undo({ sandbox, history }: Session, path: string): Promise<EditorResult> {
  const key = posix.normalize(path)
  const latest = history.peek(key)
  if (!latest) return failed(`there is no edit of ${path} to undo`)
  const { before } = await read({ sandbox }, path)
  if (!before.equals(latest.after)) return failed(`${path} was changed by something else since it was edited`)
  await sandbox.save(path, latest.before, { exclusive: false })
  history.take(key)
  return done(`Reverted ${path}`)
}

async function change(session: Session, path: string, before: Buffer, text: string): Promise<void> {
  const after = Buffer.from(text.toWellFormed())
  await session.sandbox.save(path, after, { exclusive: false })
  session.history.remember(posix.normalize(path), { before, after })
}

async function read({ sandbox }: Pick<Session, 'sandbox'>, path: string): Promise<{ text: string; before: Buffer }> {
  const viewed = await sandbox.view(path, MAX_EDITED_BYTES)
  if ('names' in viewed) throw new FileRefused(400, 'not a file')
  const { data: before, size } = viewed
  if (size > MAX_EDITED_BYTES) throw new FileRefused(413, 'too large to be edited')
  try {
    return { text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(before), before }
  } catch {
    throw new FileRefused(422, 'not a text file')
  }
}
