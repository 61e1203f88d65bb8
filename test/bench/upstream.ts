import { createServer, type ServerResponse } from 'node:http'
import { z } from 'zod'
import { type Script, scripts, TEXT, wireOf } from './wires.ts'

/**
 * The model providers of the measurements, a process of its own. An answer is streamed as what was said to the model asks
 * for, `[<pieces>, <gap in ms>, <how large>]`; without that it comes whole. It checks nothing else: the strict stand-ins are in the tests.
 */
export const asking = (pieces: number, gapMs: number, size = 1): string =>
  `Say something about rivers. [${pieces}, ${gapMs}, ${size}]`

const wish = /\[(\d+), (\d+), (\d+)\]/
const number = z.coerce.number().int().nonnegative()

/** How far all streams without a gap have come. */
interface Written {
  bytes: number
}

if (process.argv[1] === import.meta.filename) serve(Number(process.argv[2]))

function serve(port: number): void {
  const written: Written = { bytes: 0 }
  const server = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      if (request.method !== 'POST') {
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(written))
        return
      }
      const spoken = scripts[wireOf(new URL(request.url ?? '', 'http://upstream').pathname)]
      const [, pieces, gapMs, size] = wish.exec(Buffer.concat(parts).toString()) ?? []
      if (pieces === undefined) {
        response.writeHead(200, { 'content-type': 'application/json' }).end(spoken.whole)
        return
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const script = { ...spoken, piece: spoken.piece.replace(TEXT, TEXT.repeat(number.parse(size))) }
      for (const frame of script.begin) response.write(frame)
      if (number.parse(gapMs) > 0) trickle(response, script, number.parse(pieces), number.parse(gapMs))
      else pour(response, script, number.parse(pieces), written)
    })
  })
  server.listen(port, '127.0.0.1', () => process.send?.('ready'))
  process.on('disconnect', () => process.exit(0))
}

/** One piece after the other, as models speak. */
function trickle(response: ServerResponse, { piece, end }: Script, pieces: number, gapMs: number): void {
  let sent = 0
  const timer = setInterval(() => {
    if (sent++ < pieces) response.write(piece)
    else {
      clearInterval(timer)
      response.end(end)
    }
  }, gapMs)
  response.on('close', () => clearInterval(timer))
}

/** As fast as it is taken. */
function pour(response: ServerResponse, { piece, end }: Script, pieces: number, written: Written): void {
  let sent = 0
  const go = () => {
    while (sent++ < pieces) {
      written.bytes += piece.length
      if (response.write(piece)) continue
      response.once('drain', go)
      return
    }
    response.end(end)
  }
  go()
}
