import type { ServerResponse } from 'node:http'

let held: ServerResponse[] = []

/**
 * What is written to an answer now goes out when the event loop has seen to everyone who has something to say, and so does
 * what is written to all others: writes one after the other cost much less than writes with work between, since whoever
 * reads them is awake by then. Nothing waits for what has not come yet.
 */
export function holdForTurn(answer: ServerResponse): void {
  if (answer.writableCorked > 0) return
  answer.cork()
  if (held.push(answer) === 1) setImmediate(release)
}

function release(): void {
  const answers = held
  held = []
  // an answer that has ended has let go of everything itself, and its connection may be another's by now
  for (const answer of answers) if (!answer.writableEnded) answer.uncork()
}
