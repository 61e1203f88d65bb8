export interface StreamEvent {
  type: string
  index?: number
  content_block?: { type: string; id?: string; text?: string; input?: object }
  delta?: { type?: string; stop_reason?: string; partial_json?: string; text?: string }
  message?: { id: string; model: string; usage: object; container?: object }
  usage?: object
}

/** The events of a stream, each with its name; what is no frame is an error. */
export function eventsIn(text: string): (StreamEvent & { event: string })[] {
  const frames = text.split('\n\n')
  if (frames.pop() !== '') throw new Error('the stream ends in the middle of a frame')
  return frames
    .filter((frame) => !frame.startsWith(':'))
    .map((frame) => {
      const read = /^event: (\w+)\ndata: (.*)$/s.exec(frame)
      if (!read) throw new Error(`not a frame: ${frame}`)
      return { event: read[1] ?? '', ...(JSON.parse(read[2] ?? '') as StreamEvent) }
    })
}

/** blocks one after the other, numbered from 0 without gaps, each started and stopped once; one message. */
export function mistakesIn(events: (StreamEvent & { event: string })[]): string[] {
  const mistakes: string[] = []
  let open: number | undefined
  let next = 0
  for (const { event, type, index } of events) {
    if (event !== 'done' && event !== type) mistakes.push(`${event} is named ${type}`)
    if (event === 'content_block_start') {
      if (open !== undefined || index !== next) mistakes.push(`block ${index} starts while ${open} is open`)
      open = index
      next += 1
    } else if (event.startsWith('content_block') && index !== open) mistakes.push(`${event} of ${index}, not ${open}`)
    if (event === 'content_block_stop') open = undefined
  }
  for (const [name, times] of [
    ['message_start', 1],
    ['message_delta', 1],
    ['message_stop', 1],
    ['done', 1],
  ] as const) {
    const found = events.filter(({ event }) => event === name).length
    if (found !== times) mistakes.push(`${found} times ${name}`)
  }
  return mistakes
}
