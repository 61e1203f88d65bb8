import type { JsonObject, ModelRequest } from '../../conversation/turn.ts'
import { generationConfig } from './config.ts'
import { transcriptOf } from './contents.ts'
import { toolMembers } from './tools.ts'

/** The body for `generateContent`. What cannot be carried out of a dialect is a 400 that names it. */
export function geminiBody(request: ModelRequest, provider: string): JsonObject {
  const { turn, model, messages } = request
  const { systemInstruction, contents } = transcriptOf(messages, provider, model)
  const config = generationConfig(turn, model)
  return {
    ...(systemInstruction && { systemInstruction }),
    contents,
    ...toolMembers(request),
    ...(Object.keys(config).length > 0 && { generationConfig: config }),
  }
}

/** A model's own path, where its name is none already. */
export function geminiPath(model: string, stream: boolean): string {
  const name = model.includes('/') ? model : `models/${model}`
  const path = name.split('/').map(encodeURIComponent).join('/')
  return stream ? `/${path}:streamGenerateContent?alt=sse` : `/${path}:generateContent`
}
