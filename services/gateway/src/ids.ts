import { randomUUID } from 'node:crypto'

/** A UUID version 7 (RFC 9562): ids made later sort later. What is random in it is a version 4's, whose entropy Node keeps ready. */
export function newId(): string {
  const time = Date.now().toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`
}
