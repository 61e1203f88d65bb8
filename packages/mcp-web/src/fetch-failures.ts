import type { Failure, FetchFailed } from '@tollgate/contracts'

/** What a failed fetch is called and how it is told: never with a URL, a host or an address in it (WM-26). */
export interface ToldFailure {
  failure: Failure
  message: string
}

export function tellFetchFailure(failed: FetchFailed): ToldFailure {
  switch (failed.failure) {
    case 'url_disallowed':
      return { failure: 'invalid_request', message: 'address not allowed: only public http and https URLs are fetched' }
    case 'domain_disallowed':
      return { failure: 'forbidden', message: 'address not allowed by the domain policy of the workspace' }
    case 'redirect_disallowed':
      return {
        failure: 'upstream',
        message:
          failed.redirect === 'too_many'
            ? 'too many redirects'
            : 'address not allowed: a redirect led to where none may',
      }
    case 'timeout':
      return { failure: 'timeout', message: `timed out${failed.stage === undefined ? '' : ` ${during[failed.stage]}`}` }
    case 'network':
      return { failure: 'upstream', message: failed.stage === undefined ? 'network failure' : broken[failed.stage] }
    case 'http_status':
      return { failure: 'upstream', message: `the server answered with status ${failed.httpStatus ?? 'unknown'}` }
    case 'unsupported_type':
      return { failure: 'invalid_value', message: `unsupported content type: ${declaredAs(failed)}` }
    case 'too_large':
      return { failure: 'invalid_value', message: `too large to be read${sizeOf(failed)}` }
    case 'extraction_failed':
      return { failure: 'upstream', message: `the content could not be read${becauseOf(failed)}` }
    case 'offset_past_end':
      return { failure: 'invalid_value', message: `offset is past the end of the text${lengthOf(failed)}` }
    case 'robots_disallowed':
      return { failure: 'forbidden', message: 'the robots policy of the site disallows this URL' }
    case 'internal':
      return { failure: 'internal', message: 'the fetch failed on our side' }
    default:
      return failed.failure satisfies never
  }
}

type Stage = NonNullable<FetchFailed['stage']>

const during: Record<Stage, string> = {
  resolve: 'while resolving the host name',
  connect: 'while connecting',
  tls: 'during the TLS handshake',
  headers: 'waiting for the response',
  body: 'while reading the response',
  encoding: 'while unpacking the response',
}

const broken: Record<Stage, string> = {
  resolve: 'could not resolve the host name',
  connect: 'could not connect',
  tls: 'TLS failure: no secure connection could be made',
  headers: 'the connection ended before there was a response',
  body: 'the connection broke off within the response',
  encoding: 'the response is not in the content encoding it is said to be in, or in one that is not read',
}

/** The type and size a server declared (WM-37). What is not of the form of a media type is not repeated. */
export function declaredAs({ declared }: FetchFailed): string {
  const type = declared?.contentType
  if (type === undefined) return `none was declared and the content looks binary${bytesOf(declared?.bytes)}`
  return `${/^[\w.+-]{1,100}\/[\w.+-]{1,100}$/.test(type) ? type : 'not a media type'}${bytesOf(declared?.bytes)}`
}

const bytesOf = (bytes: number | undefined): string => (bytes === undefined ? '' : ` (${bytes} bytes)`)
const sizeOf = ({ declared }: FetchFailed): string => bytesOf(declared?.bytes)
const lengthOf = ({ totalChars }: FetchFailed): string =>
  totalChars === undefined ? '' : `, which has ${totalChars} characters`

function becauseOf({ reason }: FetchFailed): string {
  switch (reason) {
    case 'password':
      return ': it is protected by a password'
    case 'bot_protection':
      return ': the site answers with a check for bots instead of the page'
    case 'damaged':
      return ': it is damaged'
    case 'time':
    case 'memory':
    case 'crash':
      return ': reading it took too much'
    case undefined:
      return ''
    default:
      return reason satisfies never
  }
}
