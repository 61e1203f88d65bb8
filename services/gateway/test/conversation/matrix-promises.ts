import { expect } from 'vitest'
import { type Chunk, framesOf } from './gateway.ts'
import { eventsIn, mistakesIn } from './messages-events.ts'

type Members = Record<string, unknown>

/** What a dialect promises of every stream that ends well, held against the stream's own text. */
export const promises = {
  /** BR-038 */
  chat(text: string): void {
    const frames = framesOf(text).filter((frame) => typeof frame !== 'string' || !frame.startsWith(':'))
    const chunks = frames.slice(0, -1) as (Chunk & { model: string; created: number })[]
    expect(frames.filter((frame) => typeof frame === 'string')).toEqual(['[DONE]'])
    expect(frames.at(-1)).toBe('[DONE]')
    for (const name of ['id', 'model', 'created'] as const)
      expect(new Set(chunks.map((chunk) => chunk[name])).size, name).toBe(1)
    const choices = chunks.flatMap(({ choices }) => choices)
    expect(choices.flatMap(({ delta }) => (delta as Members).role ?? [])).toEqual(['assistant'])
    expect(choices[0]?.delta).toMatchObject({ role: 'assistant' })
    const ends = chunks.filter(({ choices }) => choices.some(({ finish_reason: reason }) => reason !== null))
    expect(ends).toHaveLength(1)
    const after = chunks.slice(chunks.indexOf(ends[0] as (typeof chunks)[number]) + 1)
    expect(
      after.flatMap(({ choices }) => choices.flatMap(({ delta }) => delta.content || delta.tool_calls || [])),
    ).toEqual([])
    expect(after.filter(({ usage }) => usage).length).toBeLessThanOrEqual(1)
    let calls = 0
    for (const call of choices.flatMap(({ delta }) => (delta.tool_calls ?? []) as Members[])) {
      if (call.index !== calls) {
        expect(call.id).toBeUndefined()
        expect((call.function as Members).name || undefined).toBeUndefined()
      }
      if (call.index === calls) {
        expect(call).toMatchObject({ id: expect.stringMatching(/./), type: 'function', function: { name: /./ } })
        calls += 1
      }
      expect(call.index).toBeLessThan(calls)
    }
  },

  /** */
  messages(text: string): void {
    const events = eventsIn(text)
    expect(mistakesIn(events)).toEqual([])
    expect(events[0]?.type).toBe('message_start')
    const names = events.map(({ event }) => event).filter((event) => event !== 'ping')
    expect(names.slice(-3)).toEqual(['message_delta', 'message_stop', 'done'])
    expect(names.at(-4)).toMatch(/^content_block_stop$|^message_start$/)
  },

  /** BR-014 */
  responses(text: string): void {
    const frames = text.split('\n\n').filter((frame) => frame !== '' && !frame.startsWith(':'))
    expect(frames.pop()).toBe('data: [DONE]')
    const events = frames.map((frame) => {
      const [, name, json] = /^event: (.+)\ndata: (.*)$/s.exec(frame) ?? []
      const event = JSON.parse(json ?? '') as Members & { type: string; item?: Members; response?: Members }
      expect(event.type).toBe(name)
      return event
    })
    expect(events.map((event) => event.sequence_number)).toEqual(events.map((_, at) => at))
    expect(events.slice(0, 2).map(({ type }) => type)).toEqual(['response.created', 'response.in_progress'])
    const last = events.at(-1)
    expect(events.filter(({ type }) => /^response\.(completed|incomplete|failed)$/.test(type))).toEqual([last])
    expect(new Set(events.flatMap(({ response }) => response?.id ?? [])).size).toBe(1)

    const items: { id: unknown; open: boolean; said: string }[] = []
    for (const event of events.slice(2, -1)) {
      const at = event.output_index as number
      if (event.type === 'response.output_item.added') {
        expect(at).toBe(items.length)
        items.push({ id: event.item?.id, open: true, said: '' })
        continue
      }
      const item = items[at]
      expect(item?.open, `${event.type} of item ${at}`).toBe(true)
      expect(event.item_id ?? event.item?.id).toBe(item?.id)
      if (item && typeof event.delta === 'string') item.said += event.delta
      for (const whole of [event.text, event.arguments, event.refusal]) {
        if (typeof whole !== 'string' || !item) continue
        expect(item.said).toBe(whole)
        item.said = ''
      }
      if (item && event.type === 'response.output_item.done') item.open = false
    }
    expect(items.filter(({ open }) => open)).toEqual([])
    const done = events.filter(({ type }) => type === 'response.output_item.done')
    const inOrder = done.sort((one, other) => Number(one.output_index) - Number(other.output_index))
    expect(last?.response?.output).toEqual(inOrder.map(({ item }) => item))
  },
}
