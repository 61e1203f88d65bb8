import type { Readable } from 'node:stream'
import type { z } from 'zod'
import type { ExecCall } from '../provider.ts'
import { EventTooLarge, serverEvents } from './events.ts'
import { errorEvent, execResponse, outputEvent } from './shapes.ts'

export type StreamedAnswer =
  | { status: 'ok'; body: z.output<typeof execResponse> }
  /** As the backend would have answered with, had it not begun. */
  | { status: 'error'; httpStatus: number }
  /** Not what was agreed on. */
  | { status: 'broken' }

/** Reads a call that is answered as server-sent events, passing its output on. Throws when the connection breaks. */
export async function readStreamed(
  body: Readable,
  maxBytes: number,
  onOutput: NonNullable<ExecCall['onOutput']>,
): Promise<StreamedAnswer> {
  let heard = 0
  try {
    for await (const { event, data } of serverEvents(body, maxBytes)) {
      heard += data.length
      if (heard > 2 * maxBytes) return { status: 'broken' }
      if (event === 'output') {
        const piece = outputEvent.safeParse(parsed(data))
        if (!piece.success) return { status: 'broken' }
        onOutput(piece.data)
      } else if (event === 'result') {
        const result = execResponse.safeParse(parsed(data))
        return result.success ? { status: 'ok', body: result.data } : { status: 'broken' }
      } else if (event === 'error') {
        const error = errorEvent.safeParse(parsed(data))
        return error.success ? { status: 'error', httpStatus: error.data.status } : { status: 'broken' }
      }
    }
    return { status: 'broken' }
  } catch (thrown) {
    if (thrown instanceof EventTooLarge) return { status: 'broken' }
    throw thrown
  } finally {
    body.destroy()
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // no shape takes it
  }
}
