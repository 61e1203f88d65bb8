import { z } from 'zod'

const text = z.string().nullish()

/** A piece of what the model says; kinds nobody here knows keep every member. */
export const part = z.looseObject({
  text,
  thought: z.boolean().nullish(),
  thoughtSignature: text,
  functionCall: z.looseObject({ id: text, name: text, args: z.record(z.string(), z.unknown()).nullish() }).nullish(),
  executableCode: z.looseObject({ language: text, code: text }).nullish(),
  codeExecutionResult: z.looseObject({ outcome: text, output: text }).nullish(),
  inlineData: z.looseObject({ mimeType: text, data: text }).nullish(),
})
export type GeminiPart = z.infer<typeof part>

const candidate = z.looseObject({
  index: z.int().nullish(),
  content: z.looseObject({ parts: z.array(part).nullish() }).nullish(),
  finishReason: text,
})

/** `GenerateContentResponse`: a whole answer, and each piece of a streamed one. */
export const generated = z.looseObject({
  candidates: z.array(candidate).nullish(),
  promptFeedback: z.looseObject({ blockReason: text }).nullish(),
  usageMetadata: z.unknown().optional(),
  modelVersion: text,
  responseId: text,
  error: z.unknown().optional(),
})
export type Generated = z.infer<typeof generated>
