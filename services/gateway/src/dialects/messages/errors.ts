import { type ErrorAnswer, errorAnswer } from '../error-answer.ts'

/** A failure before the first byte, as a Messages client reads it. */
export const messagesError = (thrown: unknown): ErrorAnswer => errorAnswer(thrown, 'messages')
