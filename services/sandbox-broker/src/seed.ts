import { Readable } from 'node:stream'
import type { Handler } from '@tollgate/bus'
import { Fault, type sandboxSeed } from '@tollgate/contracts'
import { type FileStore, workspaceNames } from '@tollgate/files'
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
