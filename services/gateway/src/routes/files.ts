import { Readable } from 'node:stream'
import { Fault } from '@tollgate/contracts'
import type { FileStore } from '@tollgate/files'
import type { Log } from '@tollgate/telemetry'
import type { FastifyRequest } from 'fastify'
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { actFor } from '../auth/acting-user.ts'
import type { Identities } from '../auth/identities.ts'
import { attachment } from '../files/file-name.ts'
import { type FileRows, viewOf } from '../files/rows.ts'
import { anthropic, type FileShape, openAi, shownDeletion, shownFile, shownList } from '../files/shapes.ts'
import { takeUpload } from '../files/upload.ts'
import type { GatewaySettings } from '../settings.ts'
import { shortText } from './wire.ts'

export interface FileRoutesNeeds {
  /** Undefined where files are switched off. */
  files: { store: FileStore; rows: FileRows } | undefined
  identities: Identities
  settings: GatewaySettings
  log: Log
}

const tags = ['files']
const byId = z.object({ id: shortText })
const narrowed = { workspace_id: shortText.optional().describe('With the master key: of this workspace only') }
/** The vendor's client adds `beta=true` to every path. */
const anyBeta = { beta: z.string().optional() }
const one = z.strictObject({ ...narrowed, ...anyBeta })
const listed = z.strictObject({
  limit: z.coerce.number().int().min(1).max(1_000).default(100),
  after: shortText.optional().describe('Begin behind the file of this id'),
  after_id: shortText.optional().describe('The same, as Anthropic’s clients say it'),
  page: shortText.optional().describe('The same: the `next_page` of the page before'),
  order: z.enum(['asc', 'desc']).default('desc').describe('By time of making'),
  purpose: shortText.optional(),
  ...narrowed,
  ...anyBeta,
})

/** The dialect is the client's to choose, by the header that Anthropic's always send (FI-03). */
const shapeFor = ({ headers }: FastifyRequest): FileShape =>
  headers['anthropic-version'] === undefined ? openAi : anthropic

/** `/files`: upload, list, look at, download and delete (FI-01). What is not the caller's is not there (FI-07). */
export const fileRoutes =
  ({ files, identities, settings, log }: FileRoutesNeeds): FastifyPluginCallbackZod =>
  (app, _options, done) => {
    // the form is read where it is stored
    app.addContentTypeParser('multipart/form-data', (_request, payload, parsed) => parsed(null, payload))
    app.addHook('preValidation', async ({ identity }) => {
      if (identity.kind === 'key') await actFor(identity, undefined, { dialect: 'chat', identities, settings })
    })
    const enabled = () => {
      if (!files) throw new Fault('not_found', 'File uploads are disabled')
      return files
    }

    app.post(
      '/files',
      {
        schema: {
          tags,
          summary: 'Upload a file',
          description: 'A form with the part `file`, and with `purpose` if it is not `user_data`.',
          consumes: ['multipart/form-data'],
          response: { 200: shownFile },
        },
      },
      async (request) => {
        const { headers, body, identity } = request
        const { store, rows } = enabled()
        if (!(body instanceof Readable)) throw new Fault('invalid_request', 'the body must be multipart/form-data')
        const row = await takeUpload(
          { store, rows, settings },
          {
            body,
            contentType: headers['content-type'] ?? '',
            contentLength: Number(headers['content-length'] ?? 0),
            identity,
          },
        )
        log.info({ request: request.id, file: row.id, bytes: Number(row.bytes) }, 'file stored')
        return shapeFor(request).file(row, rows.endOf(row))
      },
    )

    app.get(
      '/files',
      { schema: { tags, summary: 'List files', querystring: listed, response: { 200: shownList } } },
      async (request) => {
        const { rows } = enabled()
        const { after, after_id, page, workspace_id, limit, order, purpose } = request.query
        const view = viewOf(request.identity, workspace_id)
        const found = await rows.page(view, { after: after ?? after_id ?? page, limit, order, purpose })
        return shapeFor(request).list(found.rows, found.more, rows.endOf)
      },
    )

    app.get(
      '/files/:id',
      { schema: { tags, summary: 'Show a file', params: byId, querystring: one, response: { 200: shownFile } } },
      async (request) => {
        const { rows } = enabled()
        const { id } = request.params
        const row = await rows.find(viewOf(request.identity, request.query.workspace_id), id)
        if (!row) throw unknownFile(id)
        return shapeFor(request).file(row, rows.endOf(row))
      },
    )

    app.get(
      '/files/:id/content',
      { schema: { tags, summary: 'Download a file', params: byId, querystring: one } },
      async (request, reply) => {
        const { store, rows } = enabled()
        const { id } = request.params
        const row = await rows.find(viewOf(request.identity, request.query.workspace_id), id)
        if (!row) throw unknownFile(id)
        const stored = await store.get(id)
        if (!stored) {
          log.error({ request: request.id, file: id }, 'the content of a file is missing from the store')
          throw unknownFile(id)
        }
        return reply
          .headers({
            'content-type': row.media_type,
            'content-length': stored.bytes,
            'content-disposition': attachment(row.filename),
            'x-content-type-options': 'nosniff',
            // what a user uploaded is never a page of this origin
            'content-security-policy': "default-src 'none'; sandbox",
            'cache-control': 'private, no-store',
          })
          .send(stored.content instanceof Readable ? stored.content : Readable.from(stored.content))
      },
    )

    app.delete(
      '/files/:id',
      { schema: { tags, summary: 'Delete a file', params: byId, querystring: one, response: { 200: shownDeletion } } },
      async (request) => {
        const { store, rows } = enabled()
        const { id } = request.params
        if (!(await rows.remove(viewOf(request.identity, request.query.workspace_id), id))) throw unknownFile(id)
        await store.delete(id).catch((err: unknown) => {
          log.warn({ request: request.id, file: id, err }, 'the content of a deleted file is left to the sweep')
        })
        return shapeFor(request).deleted(id)
      },
    )
    done()
  }

const unknownFile = (id: string) => new Fault('not_found', `File '${id}' not found`)
