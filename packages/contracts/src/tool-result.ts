import { z } from 'zod'

/** Tags of a failed provider call, safe to show to model and client (S-38, F-42); never a provider's own words. */
export const failureTags = [
  'timeout',
  'network',
  'http_error',
  'invalid_response',
  'authentication',
  'quota',
  'rate_limited',
] as const
export const failureTag = z.enum(failureTags)
export type FailureTag = z.infer<typeof failureTag>

/** The most a tool result may hold, notices included, in UTF-8 bytes (F-24, S-47). */
export const TOOL_RESULT_BYTES = 50 * 1024

const encoder = new TextEncoder()

/**
 * Text cut to at most `maxBytes` of UTF-8 with `notice` at its end when something was cut. Never splits a code point,
 * drops lone surrogates, and counts the notice (F-24).
 */
export function clipBytes(text: string, maxBytes: number, notice: string): string {
  const whole = text.toWellFormed()
  if (encoder.encode(whole).length <= maxBytes) return whole
  const room = maxBytes - encoder.encode(notice).length
  const target = new Uint8Array(Math.max(0, room))
  const { read } = encoder.encodeInto(whole, target)
  return whole.slice(0, read) + notice
}

/** What every failed tool gives the model; the texts are fixed and hold nothing from outside (L-14). */
export const toolError = (text: string): string => `[tool error] ${text}`
