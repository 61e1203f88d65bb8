/** Where the subjects of the contracts lie on a server. */
export interface Names {
  /** The subject with its leading `tg` replaced by the prefix. */
  subject(subject: string): string
  /** A stream is named as its subject, in capitals. */
  stream(subject: string): string
  cancel(call: string): string
  /** A store of objects, apart from those of other systems on the server. */
  bucket(name: string): string
}

export function openNames(prefix: string): Names {
  if (!/^[A-Za-z0-9]{1,40}$/.test(prefix)) throw new Error('the prefix of a bus is 1 to 40 letters and digits')
  const subjects = new Map<string, string>()
  const subject = (name: string): string => {
    let own = subjects.get(name)
    if (own === undefined) {
      own = `${prefix}${name.slice('tg'.length)}`
      subjects.set(name, own)
    }
    return own
  }
  return {
    subject,
    stream: (name) => subject(name).toUpperCase().replaceAll('.', '_'),
    cancel: (call) => `${prefix}.v1.cancel.${call}`,
    bucket: (name) => `${prefix}_${name}`,
  }
}
