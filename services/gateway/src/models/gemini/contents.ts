import { Fault } from '@tollgate/contracts'
import { isObject } from '../../conversation/json.ts'
import type { Json, JsonObject, Message, Part } from '../../conversation/turn.ts'
import { pairResults } from '../history.ts'
import { recordIn } from '../signatures.ts'
import { codePart } from './code-runs.ts'
import { MADE_UP_ID } from './events.ts'
import { userPart } from './parts.ts'

export interface Transcript {
  systemInstruction: JsonObject | undefined
  contents: { role: 'user' | 'model'; parts: JsonObject[] }[]
}

/** Models that demand a signature with the first call of a step, and what the vendor takes for calls they did not make. */
const SIGNING = /gemini-(?:[3-9]|\d\d)/
const UNSIGNED = 'skip_thought_signature_validator'

/** Stands first where a history begins with the model's own words. */
const CONTINUED = '[the conversation continues]'

/**
 * A conversation as Gemini takes it: system messages are its instruction, in order, wherever they stood; neighbours of
 * one role become one content. Each depends only on those before it, so that a longer conversation begins with the same.
 */
export function transcriptOf(all: readonly Message[], provider: string, model: string): Transcript {
  const system = all.filter(({ role }) => role === 'system').flatMap(({ parts }) => parts.flatMap(systemPart))
  const contents: Transcript['contents'] = []
  const names = new Map<string, string>()
  for (const { role, parts } of pairResults(all.filter((message) => message.role !== 'system'))) {
    const mine = role === 'assistant'
    const said = mine ? modelParts(parts, provider, model) : userParts(parts, names)
    if (mine) for (const part of parts) if (part.type === 'call') names.set(part.id, part.name)
    if (said.length === 0) continue
    const last = contents.at(-1)
    if (last?.role === (mine ? 'model' : 'user')) for (const part of said) last.parts.push(part)
    else contents.push({ role: mine ? 'model' : 'user', parts: said })
  }
  if (contents.length === 0) throw new Fault('invalid_request', 'there is nothing to answer: no message of a user')
  if (contents[0]?.role === 'model') contents.unshift({ role: 'user', parts: [{ text: CONTINUED }] })
  return { systemInstruction: system.length > 0 ? { parts: system } : undefined, contents }
}

function systemPart(part: Part): JsonObject[] {
  if (part.type === 'text') return part.text === '' ? [] : [{ text: part.text }]
  throw new Fault('invalid_request', `a system message cannot hold '${part.type}' for this model's provider`)
}

/** Results first, in the order of their calls; what else a user said follows them. */
function userParts(parts: readonly Part[], names: ReadonlyMap<string, string>): JsonObject[] {
  const results = parts.flatMap((part): JsonObject[] => {
    if (part.type !== 'result') return []
    const response = part.isError ? { error: part.text } : { output: part.text }
    return [{ functionResponse: { ...ownId(part.callId), name: names.get(part.callId) ?? '', response } }]
  })
  const said = parts.flatMap((part) => (part.type === 'result' ? [] : [userPart(part) ?? []].flat()))
  return [...results, ...said]
}

/** What the model said, each signature with the call or the thought that it was given with. */
function modelParts(parts: readonly Part[], provider: string, model: string): JsonObject[] {
  let pending: string | undefined
  let calls = 0
  return parts.flatMap((part): JsonObject[] => {
    switch (part.type) {
      case 'text':
        return part.text === '' ? [] : [{ text: part.text }]
      case 'thinking': {
        const [, of, signature] = /^(call|thought):(.*)$/s.exec(recordIn('gm', provider, part.signature) ?? '') ?? []
        if (of === 'call') pending = signature
        return of === 'thought' && signature ? [{ text: part.text, thought: true, thoughtSignature: signature }] : []
      }
      case 'redacted_thinking':
        return [] // another vendor's
      case 'call': {
        const signature = pending ?? (calls === 0 && SIGNING.test(model) ? UNSIGNED : undefined)
        pending = undefined
        calls += 1
        const functionCall = { ...ownId(part.id), name: part.name, args: argumentsOf(part.arguments) }
        return [{ functionCall, ...(signature !== undefined && { thoughtSignature: signature }) }]
      }
      case 'other': {
        const ran = part.dialect === 'messages' ? codePart(part.kind, part.raw) : undefined
        if (ran) return [ran]
        throw new Fault('invalid_request', `'${part.kind}' cannot be sent to this model's provider`)
      }
      default:
        throw new Fault('invalid_request', `an assistant message cannot hold '${part.type}'`)
    }
  })
}

const ownId = (id: string): { id?: string } => (id.startsWith(MADE_UP_ID) ? {} : { id })

/** Arguments that are no JSON object become an empty one (L-15). */
function argumentsOf(text: string): JsonObject {
  try {
    const input: Json = JSON.parse(text)
    return isObject(input) ? input : {}
  } catch {
    return {}
  }
}
