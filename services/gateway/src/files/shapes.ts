import { z } from 'zod'
import type { FileRow } from './rows.ts'

const openAiFile = z.strictObject({
  id: z.string(),
  object: z.literal('file'),
  bytes: z.int(),
  created_at: z.int().describe('Seconds since 1970'),
  filename: z.string(),
  purpose: z.string(),
  status: z.literal('processed'),
  expires_at: z.int().optional(),
})
const anthropicFile = z.strictObject({
  id: z.string(),
  type: z.literal('file'),
  filename: z.string(),
  mime_type: z.string(),
  size_bytes: z.int(),
  created_at: z.iso.datetime(),
  downloadable: z.literal(true),
  expires_at: z.iso.datetime().optional(),
})
const ends = { has_more: z.boolean(), first_id: z.string().nullable(), last_id: z.string().nullable() }

export const shownFile = z.union([openAiFile, anthropicFile])
export const shownList = z.union([
  z.strictObject({ object: z.literal('list'), data: z.array(openAiFile), ...ends }),
  z.strictObject({
    data: z.array(anthropicFile),
    ...ends,
    next_page: z.string().nullable().describe('To be sent as `page` for the next page'),
  }),
])
export const shownDeletion = z.union([
  z.strictObject({ id: z.string(), object: z.literal('file'), deleted: z.literal(true) }),
  z.strictObject({ id: z.string(), type: z.literal('file_deleted') }),
])

/** How a file is shown to a client of either vendor (FI-02, FI-03). */
export interface FileShape {
  file(row: FileRow, end: Date | undefined): z.input<typeof shownFile>
  list(rows: FileRow[], more: boolean, endOf: (row: FileRow) => Date | undefined): z.input<typeof shownList>
  deleted(id: string): z.input<typeof shownDeletion>
}

export const openAi: FileShape = {
  file: forOpenAi,
  list: (rows, more, endOf) => ({
    object: 'list',
    data: rows.map((row) => forOpenAi(row, endOf(row))),
    ...endsOf(rows, more),
  }),
  deleted: (id) => ({ id, object: 'file', deleted: true }),
}

export const anthropic: FileShape = {
  file: forAnthropic,
  list: (rows, more, endOf) => ({
    data: rows.map((row) => forAnthropic(row, endOf(row))),
    ...endsOf(rows, more),
    // the vendor's newer clients page by this, its older ones by last_id
    next_page: more ? (rows.at(-1)?.id ?? null) : null,
  }),
  deleted: (id) => ({ id, type: 'file_deleted' }),
}

function forOpenAi(row: FileRow, end: Date | undefined): z.input<typeof openAiFile> {
  return {
    id: row.id,
    object: 'file',
    bytes: Number(row.bytes),
    created_at: seconds(row.created_at),
    filename: row.filename,
    purpose: row.purpose,
    status: 'processed',
    ...(end && { expires_at: seconds(end) }),
  }
}

function forAnthropic(row: FileRow, end: Date | undefined): z.input<typeof anthropicFile> {
  return {
    id: row.id,
    type: 'file',
    filename: row.filename,
    mime_type: row.media_type,
    size_bytes: Number(row.bytes),
    created_at: row.created_at.toISOString(),
    downloadable: true,
    ...(end && { expires_at: end.toISOString() }),
  }
}

const seconds = (time: Date): number => Math.floor(time.getTime() / 1_000)
const endsOf = (rows: FileRow[], more: boolean) => ({
  has_more: more,
  first_id: rows[0]?.id ?? null,
  last_id: rows.at(-1)?.id ?? null,
})
