import { Fault } from '@tollgate/contracts'

export interface CallEnd {
  /** Fires with a Fault as its reason. */
  signal: AbortSignal
  /** The call has ended: nothing listens for it any more. */
  release(): void
}

/** One signal for a tool call: its request's end, its connection's, and its client's word that it may end. */
export function openCallEnd(
  request: AbortSignal,
  connection: AbortSignal,
  onCancelled: (end: (why: Fault) => void) => () => void,
): CallEnd {
  const over = new AbortController()
  const ended = () => over.abort(request.reason)
  const left = () => over.abort(new Fault('cancelled', 'the client left'))
  const stopListening = onCancelled((why) => over.abort(why))
  request.addEventListener('abort', ended)
  connection.addEventListener('abort', left)
  if (request.aborted) ended()
  if (connection.aborted) left()
  return {
    signal: over.signal,
    release() {
      stopListening()
      request.removeEventListener('abort', ended)
      connection.removeEventListener('abort', left)
    },
  }
}
