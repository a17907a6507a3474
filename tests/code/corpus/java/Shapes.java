package org.example.shapes;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

public final class Shapes {
    public sealed interface Shape permits Circle, Square {}

    public record Circle(double radius) implements Shape {
        public Circle {
            if (radius < 0) {
                throw new IllegalArgumentException("radius: " + radius);
            }
        }
    }

    public record Square(double side) implements Shape {}

    enum Unit {
        METRE("m", 1.0),
        INCH("in", 0.0254);

        final String sign;
        final double factor;

        Unit(String sign, double factor) {
            this.sign = sign;
            this.factor = factor;
        }
    }

    private Shapes() {}

    public static double area(Shape shape) {
        return switch (shape) {
            case Circle c -> Math.PI * c.radius() * c.radius();
            case Square s -> s.side() * s.side();
        };
    }

    public static <T extends Shape> Map<String, List<T>> bySize(List<? extends T> shapes) {
        List<T> sorted = new ArrayList<>(shapes);
        sorted.sort(Comparator.comparingDouble(Shapes::area));
        char quote = '"';
        int[] counts = {0, 1, 2};
        for (int i = 0, n = counts.length; i < n; i++) {
            counts[i] <<= 1;
        }
        return sorted.stream().collect(Collectors.groupingBy(shape -> area(shape) > 10 ? "large" : "small"));
    }

    static final String HELP = """
        usage: shapes "file"
        Prints areas.
        """;
}
