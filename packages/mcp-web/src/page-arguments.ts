import { pageFormat } from '@tollgate/contracts'
import { z } from 'zod'

/** What a page is asked for by: the arguments of `fetch_webpage` (WM-04), and the body of a direct fetch. */
export const pageArguments = z.object({
  url: z.string().describe('The http or https URL of the page'),
  format: pageFormat.default('text').describe('How HTML is returned; anything else comes back as it is'),
  max_length: z.int().min(1).default(10_000).describe('Most characters of text returned'),
  offset: z.int().min(0).default(0).describe('Character to begin at; next_offset of the part before'),
  include_assets: z.boolean().default(false).describe('Also list images and links of the page'),
  structured: z.boolean().default(true).describe('A JSON object; false: the plain text of the whole page alone'),
  extract_text: z.boolean().default(true).describe('false is an older spelling of format "html"'),
})
export type PageArguments = z.output<typeof pageArguments>

/** WM-35, WA-6: the older spelling wins over any format. */
export const formatOf = ({ format, extract_text }: PageArguments): PageArguments['format'] =>
  extract_text ? format : 'html'
