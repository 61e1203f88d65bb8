import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { mediaTypeOf } from '../media-types.ts'
import type { AppNeeds } from './app.ts'
import { findSession } from './find.ts'
import { HttpRefusal } from './refusal.ts'
import { sendFile } from './send-file.ts'
import { receiveUpload } from './upload.ts'

const folder = z.object({ path: z.string().max(4_096).default('.') })
const file = z.object({ path: z.string().min(1).max(4_096) })

export function fileRoutes(app: FastifyInstance, { sessions, settings }: AppNeeds): void {
  const { transferBytes } = settings.limits

  app.get('/sessions/:session/files/list', async (request) => {
    const session = findSession(sessions, request)
    const { path } = folder.parse(request.query)
    const files = await session.use(() => session.sandbox.list(path))
    return { files: files.map((file) => ({ ...file, mime_type: mediaTypeOf(file.path) })) }
  })

  app.get('/sessions/:session/files', async (request, reply) => {
    const session = findSession(sessions, request)
    const { path } = file.parse(request.query)
    const answer = {
      raw: reply.raw,
      unreadMs: settings.unreadAnswerSeconds * 1_000,
      refused: (size: number) =>
        size > transferBytes ? new HttpRefusal(413, 'the file is too large to be fetched') : undefined,
      head(size: number) {
        reply.hijack()
        reply.raw.writeHead(200, {
          'content-type': mediaTypeOf(path) ?? 'application/octet-stream',
          'content-length': size,
          'x-content-type-options': 'nosniff',
        })
      },
    }
    await session.use(() => sendFile(answer, session.sandbox, path))
  })

  app.addContentTypeParser('multipart/form-data', (_request, payload, done) => done(null, payload))
  app.post('/sessions/:session/files', { bodyLimit: transferBytes + 64 * 1024 }, async (request, reply) => {
    const session = findSession(sessions, request)
    const written = await session.use(() => receiveUpload(request, session.sandbox, transferBytes))
    return reply.status(201).send(written)
  })
}
