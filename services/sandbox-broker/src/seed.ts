import { Readable } from 'node:stream'
import type { Handler } from '@tollgate/bus'
import { Fault, type FileReference, type sandboxSeed } from '@tollgate/contracts'
import type { FileStore } from '@tollgate/files'
import type { Log } from '@tollgate/telemetry'
import type { Provider } from './provider.ts'
import { traced } from './traced.ts'

interface SeedNeeds {
  provider: Provider
  files: FileStore | undefined
  log: Log
}

/** Puts files into the working directory one after the other; what the backend refuses fails the request (FI-16). */
export const seedSession =
  ({ provider, files, log }: SeedNeeds): Handler<typeof sandboxSeed> =>
  async ({ tenancy, session, files: references }, { signal, deadline }) => {
    const names = workspaceNames(references)
    for (const [index, reference] of references.entries()) {
      const path = names[index] as string
      if (!files) throw new Fault('unavailable', 'files cannot be given to code here')
      const stored = await files.get(reference.id, { signal })
      if (!stored) throw new Fault('not_found', `no file ${reference.id}`)
      const { bytes, content } = stored
      const file = {
        path,
        mediaType: reference.mediaType,
        bytes,
        content: Readable.from(content, { objectMode: false }),
      }
      const written = await traced('put', provider.name, () => provider.put(session, file, { signal, deadline }))
      file.content.destroy()
      if (written.status === 'ok') continue
      log.warn({ request: tenancy.request, session, reason: written.reason }, 'a file was not taken by the sandbox')
      throw new Fault('upstream', `the sandbox did not take the file ${path}`)
    }
    return { names }
  }

/**
 * FI-13: the last segment of each name without what a shell or a path could trip over; equal ones are numbered
 * (`data.csv`, `data-2.csv`), whatever letters' case they were written in.
 */
export function workspaceNames(references: readonly Pick<FileReference, 'name'>[]): string[] {
  const taken = new Set<string>()
  return references.map(({ name }) => {
    const plain = plainName(name)
    const dot = plain.lastIndexOf('.')
    const [stem, extension] = dot > 0 ? [plain.slice(0, dot), plain.slice(dot)] : [plain, '']
    let free = plain
    for (let number = 2; taken.has(free.toLowerCase()); number += 1) free = `${stem}-${number}${extension}`
    taken.add(free.toLowerCase())
    return free
  })
}

const MAX_NAME_CHARACTERS = 100

function plainName(name: string): string {
  const last = name.toWellFormed().split(/[/\\]/).at(-1) ?? ''
  const safe = last.replace(/[^\p{L}\p{N}\p{M} ._()+=@,-]/gu, '').replace(/^[\s.-]+|[\s.]+$/g, '')
  const characters = [...safe]
  if (characters.length <= MAX_NAME_CHARACTERS) return safe || 'file'
  const extension = /\.[^.]{1,16}$/.exec(safe)?.[0] ?? ''
  return characters.slice(0, MAX_NAME_CHARACTERS - [...extension].length).join('') + extension
}
