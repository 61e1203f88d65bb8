import { type ErrorAnswer, errorAnswer } from '../error-answer.ts'

/** A failure before the first byte, as a Chat client reads it. */
export const chatError = (thrown: unknown): ErrorAnswer => errorAnswer(thrown, 'chat')
