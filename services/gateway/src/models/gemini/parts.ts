import { Fault } from '@tollgate/contracts'
import { z } from 'zod'
import type { JsonObject, Part } from '../../conversation/turn.ts'

const chatFile = z.object({ file: z.object({ file_data: z.string() }) })
const chatAudio = z.object({ input_audio: z.object({ data: z.string(), format: z.string() }) })

/** What a user says, as a part. Undefined for text without characters, which is refused. */
export function userPart(part: Part): JsonObject | undefined {
  switch (part.type) {
    case 'text':
      return part.text === '' ? undefined : { text: part.text }
    case 'image':
      return dataPart(part.url, part.mediaType)
    case 'other': {
      const { dialect, kind, raw } = part
      const file = dialect === 'chat' && kind === 'file' ? chatFile.safeParse(raw).data?.file : undefined
      if (file) return dataPart(file.file_data)
      const audio =
        dialect === 'chat' && kind === 'input_audio' ? chatAudio.safeParse(raw).data?.input_audio : undefined
      if (audio) return { inlineData: { mimeType: `audio/${audio.format}`, data: audio.data } }
      throw new Fault('invalid_request', `'${kind}' cannot be sent to this model's provider`)
    }
    default:
      throw new Fault('invalid_request', `a user message cannot hold '${part.type}'`)
  }
}

/** A `data:` URL becomes its bytes, any other is left to the vendor to fetch. */
function dataPart(url: string, mediaType?: string): JsonObject {
  if (/^https?:\/\//i.test(url)) return { fileData: { fileUri: url, ...(mediaType && { mimeType: mediaType }) } }
  const read = /^data:([\w.+-]+\/[\w.+-]+)(?:;[^,;]+)*;base64,(.*)$/s.exec(url)
  if (!read) throw new Fault('invalid_request', 'a file or an image must be base64 in a data: URL, or an https:// URL')
  return { inlineData: { mimeType: read[1]?.toLowerCase() ?? '', data: read[2] ?? '' } }
}
