import { z } from 'zod'

/** A text member of a provider's reply: whatever is missing, null or no text reads as empty, so one odd hit spoils no search. */
export const text = z
  .string()
  .nullish()
  .catch(undefined)
  .transform((value) => value ?? '')

/** A list of a reply's hits; an element that is no object reads as one without a URL, which is dropped later (S-81). */
export const hitList = <T extends z.ZodType<object>>(hit: T) =>
  z.array(z.unknown()).transform((elements) =>
    elements.flatMap((element) => {
      const read = hit.safeParse(element)
      return read.success ? [read.data] : []
    }),
  )
