import {
  anthropicStream,
  type FakeJson,
  geminiStream,
  openAiResponsesStream,
  openAiStream,
  type ScriptedAnswer,
} from '@tollgate/testing'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ModelEvent } from '../../src/conversation/events.ts'
import type { Tell } from '../../src/conversation/tell.ts'
import { messagesReader } from '../../src/models/anthropic/events.ts'
import * as anthropic from '../../src/models/anthropic/reply.ts'
import { geminiReader } from '../../src/models/gemini/events.ts'
import * as gemini from '../../src/models/gemini/provider.ts'
import { chatReader } from '../../src/models/openai-chat/events.ts'
import * as openAiChat from '../../src/models/openai-chat/reply.ts'
import { responsesReader } from '../../src/models/openai-responses/events.ts'
import * as openAiResponses from '../../src/models/openai-responses/reply.ts'
import type { UpstreamReply } from '../../src/models/upstream.ts'
import { toldBy } from '../told.ts'
import { faultOf, origin, replyOf, silent } from './asking.ts'

interface CutWire {
  stream(answer: ScriptedAnswer, body: FakeJson): string
  read(reply: UpstreamReply, tell: Tell<ModelEvent>): Promise<void>
}

/** Each wire as its vendor streams it and as it is read here: what every dialect says is said of these events alone. */
const wires: Record<string, CutWire> = {
  'openai-chat': {
    stream: openAiStream,
    read: (reply, tell) => openAiChat.streamed(reply, chatReader(origin, silent), origin, tell),
  },
  anthropic: {
    stream: anthropicStream,
    read: (reply, tell) => anthropic.streamed(reply, messagesReader(origin, silent), origin, tell),
  },
  'openai-responses': {
    stream: openAiResponsesStream,
    read: (reply, tell) => openAiResponses.streamed(reply, responsesReader(origin, silent), origin, tell),
  },
  gemini: {
    stream: (said) => geminiStream(said).replaceAll('\r', ''),
    read: (reply, tell) => gemini.streamed(reply, geminiReader(origin, silent), origin, tell),
  },
}

const answer: ScriptedAnswer = {
  says: [
    { thinking: 'Hé 😀', signature: 'signed' },
    { text: 'é 漢字 "😀" \\n\n' },
    { call: { id: 'call_1', name: 'run', input: { cmd: 'echo "a\\"|;&& 漢字 😀\n"' } } },
    { call: { id: 'call_2', name: 'run', input: {} } },
  ],
  piece: 40,
}
const body = {
  model: 'm',
  stream: true,
  stream_options: { include_usage: true },
  include: ['reasoning.encrypted_content'],
}

async function eventsIn(wire: CutWire, chunks: Buffer[]): Promise<ModelEvent[]> {
  return toldBy((tell) => wire.read(replyOf(chunks), tell))
}

const cutAt = (bytes: Buffer, cuts: number[]): Buffer[] => {
  const ends = [...cuts.toSorted((one, other) => one - other), bytes.length]
  return ends.map((end, i) => bytes.subarray(ends[i - 1] ?? 0, end))
}

describe.each(Object.entries(wires))('BR-020 BR-033 what is read of the %s wire', (_name, wire) => {
  const plain = wire.stream(answer, body)
  const forms = {
    'as it comes': plain,
    'with CRLF': plain.replaceAll('\n', '\r\n'),
    'with CR': plain.replaceAll('\n', '\r'),
    'without spaces behind colons, with comments between': plain
      .replaceAll(/^(event|data): /gm, '$1:')
      .replaceAll('\n\n', '\n\n: ping 😀\n\n'),
    'with a byte order mark': `\ufeff${plain}`,
  }

  test.each(Object.entries(forms))('is the same wherever its bytes are cut, %s', async (_form, text) => {
    const whole = await eventsIn(wire, [Buffer.from(plain)])
    expect(whole.filter(({ type }) => type === 'open')).toHaveLength(4)
    expect(whole.at(-1)).toMatchObject({ type: 'finish', reason: 'tool_calls' })
    const bytes = Buffer.from(text)
    expect(
      await eventsIn(
        wire,
        Array.from(bytes, (byte) => Buffer.of(byte)),
      ),
    ).toEqual(whole)
    const same = JSON.stringify(whole)
    for (let at = 0; at <= bytes.length; at += text === plain ? 1 : 23)
      expect(JSON.stringify(await eventsIn(wire, cutAt(bytes, [at]))), `cut at ${at}`).toBe(same)
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(fc.nat(bytes.length), { maxLength: 12 }), async (cuts) => {
        expect(JSON.stringify(await eventsIn(wire, cutAt(bytes, cuts)))).toBe(same)
      }),
      { numRuns: 20 },
    )
  })

  test('BR-001 BR-018 is no whole answer where the stream ends before its last frames do', async () => {
    const bytes = Buffer.from(plain)
    // an answer that said why it ended is complete; what may still be owed then is its count
    const last = plain.search(
      /"finish_reason":"tool_calls"|"stop_reason":"tool_use"|"response.completed"|"finishReason"/,
    )
    const end = Buffer.byteLength(plain.slice(0, plain.indexOf('\n\n', last)))
    for (let at = 0; at < end; at += 7)
      expect(await faultOf(eventsIn(wire, [bytes.subarray(0, at)])), `ends at ${at}`).toMatchObject({
        failure: 'upstream',
      })
  })
})
