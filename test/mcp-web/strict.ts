import { z } from 'zod'

/** The results of the web server as a strict client reads them: these members, all of them, and no other. */

const text = z.strictObject({ type: z.literal('text'), text: z.string() })

/** WM-05: a failure is one text, and says that it is one. */
export const failure = z.strictObject({ content: z.tuple([text]), isError: z.literal(true) })

const success = <C extends z.ZodType>(content: C) => z.strictObject({ content, isError: z.literal(false).optional() })

/** WM-06: one text whose whole is one JSON document. */
const json = <S extends z.ZodType>(value: S) =>
  success(z.tuple([text])).transform(({ content: [{ text }] }): z.output<S> => value.parse(JSON.parse(text)))

const page = {
  url: z.string(),
  final_url: z.url(),
  status: z.int().min(100).max(599),
  content_type: z.string().nullable(),
  title: z.string().nullable(),
  format: z.enum(['text', 'markdown', 'html']),
  extractor: z.enum(['trafilatura', 'stdlib', 'none']),
  text: z.string(),
  truncated: z.boolean(),
  total_chars: z.int().nonnegative(),
  offset: z.int().nonnegative(),
  next_offset: z.int().nonnegative().nullable(),
  has_more: z.boolean(),
  byte_cap_reached: z.boolean(),
  likely_js_rendered: z.boolean(),
}

/** WM-30, and what WM-32 says must hold between its members. */
const consistent = (value: z.output<z.ZodObject<typeof page>>): boolean =>
  value.truncated === (value.has_more || value.byte_cap_reached) &&
  value.next_offset === (value.has_more ? value.offset + Array.from(value.text).length : null)

export const webpage = json(z.strictObject(page).refine(consistent, 'members that contradict each other'))

/** WM-45 */
export const webpageWithAssets = json(
  z
    .strictObject({
      ...page,
      images: z
        .array(
          z.strictObject({
            url: z.url({ protocol: /^https?$/ }),
            alt: z.string(),
            width: z.int().nullable(),
            height: z.int().nullable(),
            source: z.enum(['img', 'og:image', 'twitter:image', 'icon']),
          }),
        )
        .max(30),
      links: z.array(z.strictObject({ url: z.url({ protocol: /^https?$/ }), text: z.string() })).max(100),
      assets_truncated: z.boolean(),
    })
    .refine(consistent, 'members that contradict each other'),
)

/** WM-60 */
export const searchResult = json(
  z.strictObject({
    provider: z.enum(['tavily', 'serper', 'brave']),
    query: z.string(),
    results: z.array(z.strictObject({ title: z.string(), url: z.string(), snippet: z.string() })).max(20),
    usage: z.record(z.string(), z.unknown()),
  }),
)

/** WM-50, WM-51 */
export const image = success(
  z.tuple([
    z.strictObject({
      type: z.literal('text'),
      text: z.string().regex(/^Image from \S+: (PNG|JPEG|GIF|WEBP), \d+x\d+ px(, scaled to \d+x\d+ for the model)?$/),
    }),
    z.strictObject({
      type: z.literal('image'),
      data: z.base64(),
      mimeType: z.enum(['image/png', 'image/jpeg', 'image/gif', 'image/webp']),
    }),
  ]),
).transform(({ content: [caption, picture] }) => ({ caption: caption.text, ...picture }))

/** `format_search_results`, and `fetch_webpage` without structure. */
export const plainText = success(z.tuple([text])).transform(({ content: [{ text }] }) => text)
