import { createServer } from 'node:http'
import { z } from 'zod'

/**
 * The model provider of the measurements, a process of its own. It answers Chat Completions at once, or streams `seed`
 * chunks, one each `GAP_MS` (a member of the vendor's own, which every gateway passes on). It checks nothing else: the
 * strict stand-in is in the tests.
 */
export const GAP_MS = 10

const body = z.object({ stream: z.boolean().default(false), seed: z.int().min(0).default(100) })
const usage = { prompt_tokens: 12, completion_tokens: 100, total_tokens: 112 }
const envelope = { id: 'chatcmpl-bench', created: 1_792_000_000, model: 'bench' }
const frame = (choices: object[], more: object = {}) =>
  `data: ${JSON.stringify({ ...envelope, object: 'chat.completion.chunk', choices, ...more })}\n\n`
const delta = (delta: object, finish_reason: string | null = null) => frame([{ index: 0, delta, finish_reason }])

const first = delta({ role: 'assistant', content: '' })
const piece = delta({ content: 'token text ' })
const last = `${delta({}, 'stop')}${frame([], { usage })}data: [DONE]\n\n`
const whole = JSON.stringify({
  ...envelope,
  object: 'chat.completion',
  choices: [{ index: 0, message: { role: 'assistant', content: 'word '.repeat(100) }, finish_reason: 'stop' }],
  usage,
})

if (process.argv[1] === import.meta.filename) serve(Number(process.argv[2]))

function serve(port: number): void {
  const server = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      if (request.method !== 'POST') {
        response.writeHead(200).end()
        return
      }
      const { stream, seed } = body.parse(JSON.parse(Buffer.concat(parts).toString()))
      if (!stream) {
        response.writeHead(200, { 'content-type': 'application/json' }).end(whole)
        return
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(first)
      let sent = 0
      const timer = setInterval(() => {
        if (sent++ < seed) response.write(piece)
        else {
          clearInterval(timer)
          response.end(last)
        }
      }, GAP_MS)
      response.on('close', () => clearInterval(timer))
    })
  })
  server.listen(port, '127.0.0.1', () => process.send?.('ready'))
  process.on('disconnect', () => process.exit(0))
}
