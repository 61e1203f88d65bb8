import { randomBytes } from 'node:crypto'
import type { TokenCounts } from '@tollgate/contracts'
import type { Log } from '@tollgate/telemetry'
import type { FinishReason, ModelEvent } from '../../conversation/events.ts'
import { signatureOf } from '../signatures.ts'
import { faultOfFrame } from '../upstream-errors.ts'
import { brokenAnswer, type Origin } from '../upstream-fault.ts'
import { codeRuns } from './code-runs.ts'
import { countedIn } from './usage.ts'
import { type GeminiPart, generated } from './wire.ts'

export interface GeminiReader {
  /** Events of one piece of a stream, or of a whole answer. Throws the fault that an error in it stands for. */
  piece(json: unknown): ModelEvent[]
  /** The rest, when the stream is over. Throws when it was no complete answer (BR-018). */
  end(): ModelEvent[]
}

/** Ids of calls that came without one; they are not given back. */
export const MADE_UP_ID = 'call_otari_'

/** Turns what Gemini says into events; one reader an answer. */
export function geminiReader(origin: Origin, log: Log): GeminiReader {
  let blocks = 0
  let calls = 0
  let started = false
  let prose: { kind: 'text' | 'thinking'; index: number } | undefined
  let reason: string | undefined
  let usage: TokenCounts | undefined
  const nextBlock = () => blocks++
  const runs = codeRuns(nextBlock)

  function endProse(out: ModelEvent[]): void {
    if (prose) out.push({ type: 'close', index: prose.index })
    prose = undefined
  }

  function openProse(kind: 'text' | 'thinking', out: ModelEvent[]): number {
    if (prose?.kind === kind) return prose.index
    endProse(out)
    prose = { kind, index: nextBlock() }
    out.push({ type: 'open', index: prose.index, block: { kind } })
    return prose.index
  }

  /** A signature ends the thought that it stands with; one of a call stands with an empty thought where there is none. */
  function sign(of: 'thought' | 'call', signature: string, out: ModelEvent[]): void {
    const index = openProse('thinking', out)
    out.push({ type: 'signature', index, signature: signatureOf('gm', origin.name, `${of}:${signature}`) })
    endProse(out)
  }

  function call({ id, name, args }: NonNullable<GeminiPart['functionCall']>, out: ModelEvent[]): void {
    if (!name) throw brokenAnswer('nameless', origin)
    endProse(out)
    calls += 1
    const index = nextBlock()
    out.push(
      { type: 'open', index, block: { kind: 'call', id: id || MADE_UP_ID + randomBytes(12).toString('hex'), name } },
      { type: 'delta', index, text: JSON.stringify(args ?? {}) },
      { type: 'close', index },
    )
  }

  function readPart(part: GeminiPart, out: ModelEvent[]): void {
    const { text, thought, thoughtSignature, functionCall, executableCode, codeExecutionResult, inlineData } = part
    if (functionCall) {
      if (thoughtSignature) sign('call', thoughtSignature, out)
      call(functionCall, out)
    } else if (executableCode || codeExecutionResult || inlineData) {
      endProse(out)
      if (executableCode) out.push(...runs.code(executableCode))
      if (codeExecutionResult) out.push(...runs.result(codeExecutionResult))
      if (inlineData) out.push(...runs.output(inlineData))
    } else {
      if (text) out.push({ type: 'delta', index: openProse(thought ? 'thinking' : 'text', out), text })
      if (thought && thoughtSignature) sign('thought', thoughtSignature, out)
    }
  }

  return {
    piece(json) {
      const read = generated.safeParse(json)
      if (read.data?.error) throw faultOfFrame(origin, json)
      if (!read.success) throw brokenAnswer('unreadable', origin, new Error('a piece has an unexpected shape'))
      const { candidates, promptFeedback, usageMetadata, modelVersion, responseId } = read.data
      const out: ModelEvent[] = []
      usage = countedIn(usageMetadata) ?? usage
      if (!started && (candidates?.length || promptFeedback?.blockReason)) {
        started = true
        const model = modelVersion || undefined
        out.push({
          type: 'start',
          id: responseId || undefined,
          created: undefined,
          model,
          ...(usage && { tokens: usage }),
        })
      }
      for (const { index, content, finishReason } of candidates ?? []) {
        if (index != null && index !== 0) throw brokenAnswer('unreadable', origin, new Error('more than one candidate'))
        for (const part of content?.parts ?? []) readPart(part, out)
        reason = finishReason ?? reason
      }
      reason ??= promptFeedback?.blockReason ?? undefined
      return out
    },

    end() {
      if (!started) throw brokenAnswer('empty', origin)
      if (reason === undefined) throw brokenAnswer('cut', origin)
      const out: ModelEvent[] = []
      endProse(out)
      if (usage) out.push({ type: 'usage', tokens: usage, raw: undefined })
      const finish = finishReason(reason, calls > 0)
      if (finish === 'unknown')
        log.warn({ provider: origin.name, reason: reason.slice(0, 64) }, 'a model ended for a reason unknown here')
      return [...out, { type: 'finish', reason: finish, raw: reason }]
    },
  }
}

const REASONS: Record<string, FinishReason> = {
  STOP: 'stop',
  MAX_TOKENS: 'length',
  SAFETY: 'content_filter',
  RECITATION: 'content_filter',
  LANGUAGE: 'content_filter',
  BLOCKLIST: 'content_filter',
  PROHIBITED_CONTENT: 'content_filter',
  SPII: 'content_filter',
  JAILBREAK: 'content_filter',
  MODEL_ARMOR: 'content_filter',
  IMAGE_SAFETY: 'content_filter',
  IMAGE_PROHIBITED_CONTENT: 'content_filter',
  IMAGE_RECITATION: 'content_filter',
}

/** The vendor has no word for a turn that ended for its calls (BR-023); an unknown reason stays unknown (BR-026). */
function finishReason(raw: string, called: boolean): FinishReason {
  const reason = Object.hasOwn(REASONS, raw) ? REASONS[raw]! : 'unknown'
  return called && reason === 'stop' ? 'tool_calls' : reason
}
