import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { z } from 'zod'

const truth = z.array(
  z.object({
    id: z.string(),
    url: z.string(),
    page_type: z.string(),
    main_content: z
      .string()
      .nullable()
      .transform((text) => text ?? ''),
  }),
)

export interface ReviewedPage {
  id: string
  url: string
  type: string
  bytes: Buffer
  mainContent: string
}

/** Pages whose main content people have marked: `html/<id>.html.gz` and `truth.json.gz`. */
export function reviewedPages(folder: string): ReviewedPage[] {
  if (!existsSync(join(folder, 'truth.json.gz'))) throw new Error(`${folder} holds no truth.json.gz`)
  const reviewed = truth.parse(JSON.parse(gunzipSync(readFileSync(join(folder, 'truth.json.gz'))).toString()))
  return reviewed.map(({ id, url, page_type, main_content }) => ({
    id,
    url,
    type: page_type,
    bytes: gunzipSync(readFileSync(join(folder, 'html', `${id}.html.gz`))),
    mainContent: main_content,
  }))
}
