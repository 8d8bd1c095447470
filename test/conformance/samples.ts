// The smallest valid files for fixtures: an image of one red pixel, and two samples of silence.

/** PNG, 1 by 1 pixel, base64. */
export const RED_PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC'

/** WAV, 8 kHz, 8 bit, mono, base64. */
export const SILENCE = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQIAAACAgA=='
