import type { UpstreamReply } from './upstream.ts'
import { brokenAnswer, type Origin } from './upstream-fault.ts'

/** Servers that stream without saying so exist, as do those that stream, or do not, whatever they were asked. */
export const isStream = ({ mediaType }: UpstreamReply, asked: boolean): boolean =>
  mediaType === 'text/event-stream' || (asked && mediaType !== 'application/json' && mediaType !== 'text/html')

export function parseJson(text: string, origin: Origin): unknown {
  if (text.trim() === '') throw brokenAnswer('empty', origin)
  try {
    return JSON.parse(text)
  } catch {
    throw brokenAnswer('unreadable', origin, new Error('no JSON'))
  }
}
