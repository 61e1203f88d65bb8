import { fileIdTime } from '@tollgate/files'
import { isObject } from '../conversation/json.ts'
import type { Json, ToolEntry } from '../conversation/turn.ts'
import { Uncarried } from '../models/uncarried.ts'

/**
 * Files of this gateway's store that the declaration of `code_interpreter` gives to code, in OpenAI's words: files for a
 * new container. Ids of any other form are the provider's own, and pass.
 */
export function declaredFileIds(entry: ToolEntry): string[] {
  return idsIn(entry).filter(isOurs)
}

/** The entry without them, for a provider that knows none of them. */
export function withoutDeclaredFiles(entry: ToolEntry): ToolEntry {
  if (declaredFileIds(entry).length === 0) return entry
  const { file_ids: _all, ...container } = entry.raw.container as { [name: string]: Json }
  const theirs = idsIn(entry).filter((id) => !isOurs(id))
  const given = theirs.length === 0 ? container : { ...container, file_ids: theirs }
  return { ...entry, raw: { ...entry.raw, container: given } }
}

/** Code that runs here cannot have what only a provider holds. */
export function refuseTheirFiles(tools: readonly ToolEntry[]): void {
  const [id] = tools.flatMap(idsIn).filter((one) => !isOurs(one))
  if (id === undefined) return
  throw new Uncarried(
    'invalid_request',
    `The file '${id.replace(/[^\x20-\x7e]/g, '').slice(0, 64)}' was not uploaded to this gateway, and the code execution for this request runs here. Upload it, or send Otari-Code-Execution: provider to run the code where the file is.`,
  )
}

function idsIn({ kind, raw }: ToolEntry): string[] {
  if (kind !== 'typed' || raw.type !== 'code_interpreter' || !isObject(raw.container as Json)) return []
  const { file_ids: ids } = raw.container as { [name: string]: Json }
  return Array.isArray(ids) ? ids.filter((id) => typeof id === 'string') : []
}

const isOurs = (id: string): boolean => fileIdTime(id) !== undefined
