package org.example.desk;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class StoreTest {
    private Store store;

    @BeforeEach
    void open() throws Exception {
        store = new Store(":memory:");
    }

    @Test
    void findsWhatWasAdded() {
        long id = store.add("Long Lane");
        assertEquals("Long Lane", store.get(id).orElseThrow().street());
    }

    @ParameterizedTest
    @ValueSource(strings = {"", " ", "\t"})
    void refusesEmptyStreets(String street) {
        assertThrows(IllegalArgumentException.class, () -> store.add(street));
    }

    @Test
    void closes() {
        try (var other = new Store(":memory:")) {
            other.add("a");
        } catch (IllegalStateException | RuntimeException error) {
            throw new AssertionError("not closed: " + error.getMessage(), error);
        } finally {
            System.out.println("done");
        }
    }
}
