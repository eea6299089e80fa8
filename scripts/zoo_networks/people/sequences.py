"""Networks over a sequence: dilated and plain convolutions of one dimension, attention, recurrent ones."""

from __future__ import annotations

import keras
from keras import layers

from scripts.zoo_networks.layers import Tensor


def tcn(length: int = 128, features: int = 16, filters: int = 32, levels: int = 6) -> keras.Model:
    """Temporal convolutional network (Bai et al., arXiv 1803.01271): two causal convolutions a level, residual."""
    inputs = x = keras.Input((length, features))
    for level in range(levels):
        y = x
        for _ in range(2):
            y = layers.Conv1D(filters, 3, padding="causal", dilation_rate=2**level)(y)
            y = layers.ReLU()(layers.BatchNormalization()(y))
        x = x if level else layers.Conv1D(filters, 1)(x)
        x = layers.ReLU()(layers.Add()([x, y]))
    return keras.Model(inputs, _scores(layers.GlobalAveragePooling1D()(x), 6))


def wavenet(length: int = 256, filters: int = 16, levels: int = 7) -> keras.Model:
    """WaveNet (van den Oord et al., arXiv 1609.03499): gated, dilated, causal, with sums over all levels."""
    inputs = keras.Input((length, 1))
    x, skips = layers.Conv1D(filters, 2, padding="causal")(inputs), []
    for level in range(levels):
        sides = [
            layers.Conv1D(filters, 2, padding="causal", dilation_rate=2**level, activation=name)(x)
            for name in ("tanh", "sigmoid")
        ]
        gated = layers.Multiply()(sides)
        skips.append(layers.Conv1D(filters, 1)(gated))
        x = layers.Add()([x, layers.Conv1D(filters, 1)(gated)])
    y = layers.Conv1D(filters, 1, activation="relu")(layers.ReLU()(layers.Add()(skips)))
    return keras.Model(inputs, layers.Conv1D(8, 1)(y))


def motion(length: int = 128, features: int = 6) -> keras.Model:
    """Convolutions over accelerometer and gyroscope, 50 Hz: what tutorials of human activity recognition train."""
    inputs = x = keras.Input((length, features))
    for filters in (32, 64, 64):
        x = layers.Conv1D(filters, 5, padding="same", activation="relu")(x)
        x = layers.MaxPooling1D(2)(x)
    return keras.Model(inputs, _scores(layers.Dense(64, activation="relu")(layers.Flatten()(x)), 6))


def ecg(length: int = 1024) -> keras.Model:
    """A residual network of one dimension over an electrocardiogram, as in Hannun et al. (2019), much smaller."""
    inputs = keras.Input((length, 1))
    x = _normed(layers.Conv1D(16, 15, strides=2, padding="same")(inputs))
    for filters in (16, 32, 64):
        y = _normed(layers.Conv1D(filters, 9, strides=2, padding="same")(x))
        y = layers.BatchNormalization()(layers.Conv1D(filters, 9, padding="same")(y))
        x = layers.ReLU()(layers.Add()([layers.Conv1D(filters, 1, strides=2, padding="same")(x), y]))
    return keras.Model(inputs, _scores(layers.GlobalAveragePooling1D()(x), 5))


def keywords_raw(samples: int = 16_000) -> keras.Model:
    """Convolutions over a second of sound at 16 kHz, no spectrogram: M5 (Dai et al., arXiv 1610.00087), smaller."""
    inputs = keras.Input((samples, 1))
    x = _normed(layers.Conv1D(16, 80, strides=4, padding="same")(inputs))
    for filters in (16, 32, 64):
        x = _normed(layers.Conv1D(filters, 3, padding="same")(layers.MaxPooling1D(4)(x)))
    return keras.Model(inputs, _scores(layers.GlobalAveragePooling1D()(x), 12))


def keywords_spectrogram(frames: int = 49, features: int = 40) -> keras.Model:
    """Convolutions over the frames of a spectrogram, its features as channels: as TC-ResNet (arXiv 1904.03814)."""
    inputs = keras.Input((frames, features))
    x = _normed(layers.Conv1D(64, 9, padding="same")(inputs))
    for filters in (96, 64):
        x = _normed(layers.Conv1D(filters, 9, strides=2, padding="same")(x))
    return keras.Model(inputs, _scores(layers.GlobalAveragePooling1D()(x), 12))


def keyword_transformer(tokens: int = 98, features: int = 40, width: int = 64, depth: int = 3) -> keras.Model:
    """Keyword Transformer (Berg et al., arXiv 2104.00769): attention over the frames of a spectrogram."""
    inputs = keras.Input((tokens, features))
    x = layers.Dense(width)(inputs)
    for _ in range(depth):
        y = layers.MultiHeadAttention(num_heads=2, key_dim=width // 2)(x, x)
        x = layers.LayerNormalization()(layers.Add()([x, y]))
        y = layers.Dense(width)(layers.Dense(2 * width, activation="relu")(x))
        x = layers.LayerNormalization()(layers.Add()([x, y]))
    return keras.Model(inputs, _scores(layers.GlobalAveragePooling1D()(x), 12))


def lstm(length: int = 32, features: int = 16) -> keras.Model:
    """An LSTM that the converter fuses into one operator; it needs a batch of 1 for that."""
    inputs = keras.Input((length, features), batch_size=1)
    return keras.Model(inputs, _scores(layers.LSTM(32)(inputs), 6))


def gru_unrolled(length: int = 16, features: int = 16) -> keras.Model:
    """A GRU, step by step: TFLite has no fused one."""
    inputs = keras.Input((length, features), batch_size=1)
    return keras.Model(inputs, _scores(layers.GRU(24, unroll=True)(inputs), 6))


def lstm_unrolled(length: int = 16, features: int = 16) -> keras.Model:
    """An LSTM, step by step."""
    inputs = keras.Input((length, features), batch_size=1)
    return keras.Model(inputs, _scores(layers.LSTM(24, unroll=True)(inputs), 6))


def _normed(x: Tensor) -> Tensor:
    return layers.ReLU()(layers.BatchNormalization()(x))


def _scores(x: Tensor, classes: int) -> Tensor:
    return layers.Dense(classes, activation="softmax")(x)
