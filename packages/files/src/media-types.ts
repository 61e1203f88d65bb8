const OCTETS = 'application/octet-stream'

/** By the ending of a name, for those that people and programs exchange. */
const byExtension: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'application/gzip': 'gz tgz',
    'application/json': 'json ipynb geojson',
    'application/msword': 'doc',
    'application/pdf': 'pdf',
    'application/rtf': 'rtf',
    'application/sql': 'sql',
    'application/toml': 'toml',
    'application/vnd.apache.parquet': 'parquet',
    'application/vnd.ms-excel': 'xls',
    'application/vnd.ms-powerpoint': 'ppt',
    'application/vnd.openxmlformats-officedocument.presentationml.presentation': 'pptx',
    'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet': 'xlsx',
    'application/vnd.openxmlformats-officedocument.wordprocessingml.document': 'docx',
    'application/x-7z-compressed': '7z',
    'application/x-ndjson': 'ndjson jsonl',
    'application/x-tar': 'tar',
    'application/xml': 'xml xsl',
    'application/yaml': 'yaml yml',
    'application/zip': 'zip',
    'audio/mpeg': 'mp3',
    'audio/ogg': 'ogg',
    'audio/wav': 'wav',
    'image/bmp': 'bmp',
    'image/gif': 'gif',
    'image/jpeg': 'jpg jpeg',
    'image/png': 'png',
    'image/svg+xml': 'svg',
    'image/tiff': 'tif tiff',
    'image/webp': 'webp',
    'text/css': 'css',
    'text/csv': 'csv',
    'text/html': 'html htm',
    'text/javascript': 'js mjs cjs',
    'text/markdown': 'md markdown',
    'text/plain': 'txt log text ini cfg conf sh bat c h cc cpp hpp go java kt rb rs swift ts tsx jsx php pl r',
    'text/tab-separated-values': 'tsv',
    'text/x-python': 'py',
    'video/mp4': 'mp4 m4v',
    'video/webm': 'webm',
  }).flatMap(([type, extensions]) => extensions.split(' ').map((extension) => [extension, type] as const)),
)

/** What files of a kind begin with, in hex. */
const beginnings: readonly [RegExp, string][] = [
  [/^89504e470d0a1a0a/, 'image/png'],
  [/^ffd8ff/, 'image/jpeg'],
  [/^47494638(37|39)61/, 'image/gif'],
  [/^52494646.{8}57454250/, 'image/webp'],
  [/^52494646.{8}57415645/, 'audio/wav'],
  [/^255044462d/, 'application/pdf'],
  [/^504b(0304|0506)/, 'application/zip'],
  [/^1f8b/, 'application/gzip'],
  [/^50415231/, 'application/vnd.apache.parquet'],
  [/^424d.{8}00000000/, 'image/bmp'],
  [/^(49492a00|4d4d002a)/, 'image/tiff'],
  [/^.{8}66747970/, 'video/mp4'],
]

/** As many bytes of a file's beginning as tell its kind. */
export const SNIFFED_BYTES = 16

/** A file's media type by its name, else by its first bytes, else one that promises nothing (FI-26). */
export function mediaTypeOf(name: string, beginning?: Uint8Array): string {
  const extension = /\.([a-z0-9]{1,10})$/i.exec(name)?.[1]?.toLowerCase()
  const named = extension === undefined ? undefined : byExtension.get(extension)
  if (named !== undefined || beginning === undefined) return named ?? OCTETS
  const hex = Buffer.from(beginning.subarray(0, SNIFFED_BYTES)).toString('hex')
  return beginnings.find(([pattern]) => pattern.test(hex))?.[1] ?? OCTETS
}

/** A type as somebody told it, without its parameters; undefined when it is none, or says nothing. */
export function toldMediaType(told: string | undefined): string | undefined {
  const type = told?.split(';')[0]?.trim().toLowerCase() ?? ''
  return /^[a-z0-9][\w.+!#$&^-]{0,126}\/[a-z0-9][\w.+!#$&^-]{0,126}$/.test(type) && type !== OCTETS ? type : undefined
}
