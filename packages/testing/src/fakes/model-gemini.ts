import { geminiMistake } from './model-gemini-rules.ts'
import { type FakeJson, type ModelScript, piecesOf, type Said, type ScriptedAnswer } from './model-script.ts'
import { eventStream, type FakeModel, json, type Refusal, startFakeModel } from './model-server.ts'

export interface FakeGeminiOptions {
  /** A request without this key is a 400, as the vendor has it; any key will do when absent. */
  apiKey?: string
  /** A model that demands the signatures of its calls back. */
  signs?: boolean
}

const USAGE = { promptTokenCount: 11, candidatesTokenCount: 7, totalTokenCount: 18 }
const PATH = /^\/v1beta\/models\/[\w.-]+:(generateContent|streamGenerateContent)$/

/** Google's Gemini API with a scripted model behind it. Its base is `<url>/v1beta`. */
export const fakeGemini = (script: ModelScript, options: FakeGeminiOptions = {}): Promise<FakeModel> => {
  const signatures = new Set<string>()
  return startFakeModel(
    {
      path: PATH,
      refuse(body, headers) {
        if (options.apiKey !== undefined && headers['x-goog-api-key'] !== options.apiKey)
          return refusal('API key not valid. Please pass a valid API key.')
        const mistake = geminiMistake(body, { signatures, signs: options.signs ?? false })
        return mistake === undefined ? undefined : refusal(mistake)
      },
      render(answer, _body, round, path) {
        const pieces = piecesOfAnswer(answer, round)
        for (const { thoughtSignature: given } of pieces.flatMap(partsOf)) if (given) signatures.add(String(given))
        return path.endsWith(':streamGenerateContent')
          ? eventStream(pieces.map((piece) => `data: ${JSON.stringify(piece)}\r\n\r\n`).join(''))
          : json(200, whole(answer, round))
      },
    },
    script,
  )
}

function refusal(message: string): Refusal {
  return { status: 400, message, body: { error: { code: 400, message, status: 'INVALID_ARGUMENT' } } }
}

const partsOf = (piece: FakeJson): FakeJson[] =>
  (piece.candidates as { content: { parts: FakeJson[] } }[]).flatMap(({ content }) => content.parts)

/** The answer as the frames of a stream. */
export const geminiStream = (answer: ScriptedAnswer, round = 0): string =>
  piecesOfAnswer(answer, round)
    .map((piece) => `data: ${JSON.stringify(piece)}\r\n\r\n`)
    .join('')

function piecesOfAnswer(answer: ScriptedAnswer, round: number): FakeJson[] {
  const parts = partsSaid(answer).flatMap((part) =>
    typeof part.text === 'string' ? piecesOf(part.text, answer.piece ?? 5).map((text) => ({ ...part, text })) : [part],
  )
  const all = parts.map((part): FakeJson => ({ candidates: [{ content: { role: 'model', parts: [part] }, index: 0 }] }))
  const last: FakeJson = {
    candidates: [
      { content: { role: 'model', parts: [{ text: '' }] }, finishReason: answer.finish ?? 'STOP', index: 0 },
    ],
  }
  return [...all, last].map((piece) => ({ ...piece, ...head(answer, round) }))
}

function whole(answer: ScriptedAnswer, round: number): FakeJson {
  const content = { role: 'model', parts: partsSaid(answer) }
  return { candidates: [{ content, finishReason: answer.finish ?? 'STOP', index: 0 }], ...head(answer, round) }
}

const head = ({ usage }: ScriptedAnswer, round: number): FakeJson => ({
  ...(usage !== null && { usageMetadata: usage ?? USAGE }),
  modelVersion: 'gemini-fake',
  responseId: `gemini_up_${round + 1}`,
})

/** A call is signed by the thought right before it, which tells its words without a signature then. */
function partsSaid({ says, native = [] }: ScriptedAnswer): FakeJson[] {
  const said = says.flatMap((one, i): FakeJson[] => {
    const next = says[i + 1]
    const before = says[i - 1]
    if ('text' in one) return [{ text: one.text }]
    if ('redacted' in one) throw new Error('Gemini has no redacted thinking')
    if ('thinking' in one) {
      const signs = next === undefined || !('call' in next)
      return [{ text: one.thinking, thought: true, ...(signs && one.signature && { thoughtSignature: one.signature }) }]
    }
    const signature = before && 'thinking' in before ? before.signature : undefined
    return [{ functionCall: callOf(one), ...(signature !== undefined && { thoughtSignature: signature }) }]
  })
  return [...native.map(({ item }) => item), ...said]
}

const callOf = ({ call: { id, name, input } }: Extract<Said, { call: object }>): FakeJson => ({
  ...(id !== '' && { id }),
  name,
  args: input,
})
