import type { FileReference, Tenancy } from '@tollgate/contracts'
import { fileIdTime, mediaTypeOf } from '@tollgate/files'
import type { Log } from '@tollgate/telemetry'
import { fileName } from './file-name.ts'
import type { FileRows } from './rows.ts'

/** What a request's tools know of files. */
export interface ToolFiles {
  /** What the request names: code is given it before its first call (FI-12). */
  attached: readonly FileReference[]
  /**
   * Makes files that a tool has stored the caller's own (FI-21). Gives the ids of those that are; bytes of others are
   * swept, and their run stands (FI-22).
   */
  keep(produced: readonly FileReference[], tenancy: Tenancy): Promise<ReadonlySet<string>>
}

export const toolFiles = (rows: FileRows | undefined, attached: readonly FileReference[], log: Log): ToolFiles => ({
  attached,
  async keep(produced, { organization, workspace, user, request }) {
    const kept = new Set<string>()
    for (const { id, name, mediaType, bytes } of produced) {
      try {
        await rows?.insert({
          id,
          organization,
          workspace,
          user_id: user,
          filename: fileName(name),
          media_type: mediaType || mediaTypeOf(name),
          bytes: BigInt(bytes),
          purpose: 'code_execution_output',
          created_at: fileIdTime(id) ?? new Date(),
          expires_at: null,
        })
        if (rows) kept.add(id)
      } catch (err) {
        log.error({ request, file: id, err }, 'a file that code made could not be given to its owner')
      }
    }
    return kept
  },
})
