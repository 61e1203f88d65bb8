export interface FreshNeeds {
  read(): Promise<void>
  /** It is read again this often, should news of a change be lost (CFG-52). */
  everyMs: number
  /** A reading that nobody waits for went wrong; the next one tries again. */
  onFailure(thrown: unknown): void
}

export interface Fresh {
  /** One reading at a time; whoever asks meanwhile is answered by one that began after it asked. */
  now(): Promise<void>
  /** The same, without waiting. */
  soon(): void
  /** Reads no more, and waits for a reading under way. */
  close(): Promise<void>
}

/** Reads something stored elsewhere again and again. The first reading is its owner's to ask for. */
export function keepFresh({ read, everyMs, onFailure }: FreshNeeds): Fresh {
  let reading: Promise<void> | undefined
  let open = true

  async function now(): Promise<void> {
    await reading?.catch(() => {}) // its own caller hears of it
    reading ??= read().finally(() => {
      reading = undefined
    })
    return reading
  }
  const soon = () => {
    if (open) void now().catch(onFailure)
  }
  const timer = setInterval(soon, everyMs)
  return {
    now,
    soon,
    async close() {
      open = false
      clearInterval(timer)
      await reading?.catch(() => {}) // told already
    },
  }
}
