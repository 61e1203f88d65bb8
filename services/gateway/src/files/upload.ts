import type { Readable } from 'node:stream'
import { Fault } from '@tollgate/contracts'
import { type FileStore, fileIdTime, mediaTypeOf, newFileId, toldMediaType } from '@tollgate/files'
import { z } from 'zod'
import type { Identity } from '../auth/identity.ts'
import type { GatewaySettings } from '../settings.ts'
import { Invalid, problemsOf } from '../validation.ts'
import { fileName } from './file-name.ts'
import { type ReceivedFile, readOn, receiveForm } from './form.ts'
import type { FileRow, FileRows } from './rows.ts'

const MIB = 1024 * 1024
/** What a form adds to its file: boundaries, headers, fields. */
const FORM_BYTES = MIB

const DAYS_30 = 30 * 24 * 3_600
/** Fields of both vendors' forms; what else there is means nothing here. */
const fields = z.object({
  purpose: z
    .string()
    .regex(/^[\w.-]{1,64}$/, 'must be 1 to 64 letters, digits, _ . and -')
    .default('user_data'),
  'expires_after[anchor]': z.literal('created_at').optional(),
  'expires_after[seconds]': z.coerce.number().int().min(3_600).max(DAYS_30).optional(),
  expires_in_seconds: z.coerce.number().int().min(1).max(DAYS_30).optional(),
})

interface UploadNeeds {
  store: FileStore
  rows: FileRows
  settings: GatewaySettings
}

export interface Upload {
  body: Readable
  contentType: string
  contentLength: number
  identity: Identity
}

/** Stores an upload while it comes in. Its row is written last: a file that anyone can see is whole (FI-05, FI-10). */
export async function takeUpload({ store, rows, settings }: UploadNeeds, upload: Upload): Promise<FileRow> {
  const { body, identity } = upload
  const maxBytes = settings.filesMaxBytes
  const id = newFileId()
  let storing: Promise<unknown> | undefined
  const save = async ({ content, filename, mediaType }: ReceivedFile) => {
    const stored = store.put(id, content, { maxBytes })
    storing = stored
    const { bytes } = await stored
    return { bytes, filename: fileName(filename), mediaType: toldMediaType(mediaType) ?? mediaTypeOf(filename) }
  }
  try {
    if (upload.contentLength > maxBytes + FORM_BYTES) throw tooLarge(maxBytes)
    const form = await receiveForm(body, upload.contentType, save)
    const { bytes, filename, mediaType } = form.stored
    if (bytes === 0) throw new Fault('invalid_request', 'Uploaded file is empty')
    const row = {
      ...ownerOf(identity),
      id,
      filename,
      media_type: mediaType,
      bytes: BigInt(bytes),
      ...said(form.fields, id),
    }
    await rows.insert(row)
    return row
  } catch (thrown) {
    // what cannot be removed now has no row, and is swept
    await storing?.then(() => store.delete(id)).catch(() => undefined)
    await readOn(body, Math.max(2 * maxBytes, 64 * MIB))
    throw thrown instanceof Fault && thrown.failure === 'too_large' ? tooLarge(maxBytes) : thrown
  }
}

const tooLarge = (maxBytes: number) =>
  new Fault('too_large', `File exceeds maximum upload size of ${Number((maxBytes / MIB).toFixed(2))} MB`)

const ownerOf = ({ organization, workspace, user }: Identity) => ({ organization, workspace, user_id: user })

function said(given: Record<string, string>, id: string): Pick<FileRow, 'purpose' | 'created_at' | 'expires_at'> {
  const { data, error } = fields.safeParse(given)
  if (error) throw new Invalid(problemsOf(error, 'body'))
  const created_at = fileIdTime(id) ?? new Date()
  const seconds = data['expires_after[seconds]'] ?? data.expires_in_seconds
  const expires_at = seconds === undefined ? null : new Date(created_at.getTime() + seconds * 1_000)
  return { purpose: data.purpose, created_at, expires_at }
}
