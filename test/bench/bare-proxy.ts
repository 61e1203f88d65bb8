import fastify from 'fastify'
import { Pool } from 'undici'

/**
 * The floor: fastify and undici with nothing between. It reads the JSON body, as every gateway must to route by model,
 * sends it on and pipes the answer back.
 */
const [port, upstream = ''] = process.argv.slice(2)
const pool = new Pool(upstream, { connections: 128, pipelining: 1 })
const app = fastify({ logger: false })

app.post('/*', async (request, reply) => {
  const gone = new AbortController()
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) gone.abort()
  })
  const { statusCode, headers, body } = await pool.request({
    method: 'POST',
    path: request.url,
    headers: { 'content-type': 'application/json', authorization: 'Bearer upstream' },
    body: JSON.stringify(request.body),
    signal: gone.signal,
  })
  reply.code(statusCode).header('content-type', headers['content-type'])
  return reply.send(body)
})

await app.listen({ port: Number(port), host: '127.0.0.1' })
process.send?.('ready')
process.on('disconnect', () => process.exit(0))
